package filestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-run/weir/store"
)

// piece is the body of a document with content.
type piece struct {
	Data []byte `json:"data"`
}

func pieceID(file string, n int64) string { return fmt.Sprintf("%s/%06d", file, n) }

// Create stores the content of a new file, at most limit bytes, and completes f with its type, size and digest. The errors
// ErrType, ErrSize, ErrEmpty and those of reading store nothing.
func (s *Store) Create(ctx context.Context, f *File, content io.Reader, limit int64) error {
	if err := s.put(ctx, f, time.Now().Add(uploadTime)); err != nil {
		return err
	}
	err := s.write(ctx, f, content, limit)
	if err == nil {
		f.Ready = true
		err = s.put(ctx, f, f.Expires)
	}
	if err != nil { // a failure to clean up leaves an upload that Sweep deletes
		_ = s.Delete(context.WithoutCancel(ctx), f.ID)
	}
	return err
}

func (s *Store) write(ctx context.Context, f *File, content io.Reader, limit int64) error {
	digest := sha256.New()
	kind := typeFinder{name: f.Name}
	buffer := make([]byte, pieceSize)
	content = cutReader{content}
	for n := int64(0); ; n++ {
		got, err := io.ReadFull(content, buffer)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		data := buffer[:got]
		if f.Size += int64(got); f.Size > limit {
			return ErrSize
		}
		digest.Write(data)
		if !kind.add(data, last) {
			return ErrType
		}
		if got > 0 {
			body, err := json.Marshal(piece{data})
			if err != nil {
				return err
			}
			if _, err := s.docs.PutDocument(ctx, store.Document{Kind: PieceKind, ID: pieceID(f.ID, n), User: f.User, Body: body}); err != nil {
				return err
			}
		}
		if last {
			break
		}
	}
	if f.Size == 0 {
		return ErrEmpty
	}
	f.Type, f.SHA256 = kind.found, hex.EncodeToString(digest.Sum(nil))
	return nil
}

// cutReader tells content that ends in the middle from content that has ended, which io.ReadFull does not.
type cutReader struct{ io.Reader }

// Read implements io.Reader.
func (r cutReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrCut
	}
	return n, err
}

// typeFinder finds the type of content that comes in pieces. What a client says of the type is not believed: the extension of
// the name only distinguishes kinds of text, none of which a browser executes.
type typeFinder struct {
	name  string
	found string
	rest  []byte // the beginning of a character that the last piece cut
}

// add looks at the next piece and reports whether the content may still be of a type that files have.
func (t *typeFinder) add(data []byte, last bool) bool {
	if t.found == "" {
		t.found = t.typeOf(data)
	}
	if !strings.HasPrefix(t.found, "text/") {
		return true
	}
	text := append(t.rest, data...)
	cut := len(text)
	for i := 1; !last && i < utf8.UTFMax && i <= len(text); i++ {
		if b := text[len(text)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-i:]) {
				cut = len(text) - i
			}
			break
		}
	}
	t.rest = bytes.Clone(text[cut:])
	return utf8.Valid(text[:cut]) && bytes.IndexByte(text[:cut], 0) < 0
}

// TypeOf returns the media type of a whole content, as Create finds it. ErrType, ErrEmpty.
func TypeOf(name string, data []byte) (string, error) {
	if len(data) == 0 {
		return "", ErrEmpty
	}
	t := typeFinder{name: name}
	if !t.add(data, true) {
		return "", ErrType
	}
	return t.found, nil
}

func (t *typeFinder) typeOf(data []byte) string {
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf":
		return kind
	}
	switch strings.ToLower(path.Ext(t.name)) {
	case ".csv":
		return "text/csv"
	case ".md":
		return "text/markdown"
	}
	return "text/plain"
}

// Open returns the content of a file, which is read in pieces as it is needed.
func (s *Store) Open(ctx context.Context, f *File) io.ReadSeeker {
	return &reader{ctx: ctx, s: s, f: f, have: -1}
}

// Read returns the whole content of a file.
func (s *Store) Read(ctx context.Context, f *File) ([]byte, error) {
	data := make([]byte, f.Size)
	_, err := io.ReadFull(s.Open(ctx, f), data)
	return data, err
}

// reader reads the content of a file from any position.
type reader struct {
	ctx  context.Context
	s    *Store
	f    *File
	at   int64
	have int64 // the number of the piece in data, -1 for none
	data []byte
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if r.at >= r.f.Size {
		return 0, io.EOF
	}
	if n := r.at / pieceSize; n != r.have {
		d, err := r.s.docs.Document(r.ctx, PieceKind, pieceID(r.f.ID, n))
		if err != nil {
			return 0, err
		}
		var x piece
		if err := json.Unmarshal(d.Body, &x); err != nil {
			return 0, err
		}
		r.have, r.data = n, x.Data
	}
	within := r.at % pieceSize
	if within >= int64(len(r.data)) {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, r.data[within:])
	r.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.f.Size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning of a file")
	}
	r.at = offset
	return offset, nil
}
