// Package filestore keeps the files that clients upload, as documents of the store: one with what is known of a file, and one
// for each piece of its content.
//
// It must not know who may read a file or what a file is used for.
package filestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/store"
)

// Kinds of documents.
const (
	// Kind are files, by id; PieceKind are pieces of their content, by file and number; UseKind are runs and sessions that use a
	// file, by file and user of the file, and are deleted with these.
	Kind      = "file"
	PieceKind = "file_piece"
	UseKind   = "file_use"
)

const (
	// pieceSize is how many bytes of content a document has.
	pieceSize = 256 << 10
	// uploadTime is after how long an upload that was not completed is deleted.
	uploadTime = time.Hour
	// againTime is after how long a file that has expired and is in use is looked at again.
	againTime = 24 * time.Hour
	// sweepLimit is how many files Sweep looks at.
	sweepLimit = 100
)

// Errors of Create.
var (
	// ErrType means that the content is of no type that files may have.
	ErrType = errors.New("the content is not text, a PDF, or a PNG, JPEG, GIF or WebP image")
	// ErrSize means that the content has more bytes than are allowed.
	ErrSize = errors.New("the content is too large")
	// ErrEmpty means that there is no content.
	ErrEmpty = errors.New("the content is empty")
	// ErrCut means that the content ended in the middle: its reader returned io.ErrUnexpectedEOF.
	ErrCut = errors.New("the content ends too early")
)

// File is what is known of a file.
type File struct {
	ID string `json:"-"`
	// User is the owner; "" for the owner of the process.
	User    string `json:"-"`
	Name    string `json:"name"`
	Purpose string `json:"purpose"`
	// Type is the media type, found from the content.
	Type    string    `json:"type"`
	Size    int64     `json:"size"`
	SHA256  string    `json:"sha256"`
	Created time.Time `json:"created"`
	// Expires is when it is deleted, unless a run or session that used it exists.
	Expires time.Time `json:"expires"`
	// Ready is false during the upload.
	Ready bool `json:"ready"`

	version int64
}

// Store keeps files. Its methods may be called concurrently, and by several processes.
type Store struct{ docs store.DocumentStore }

// New returns a Store that keeps files in documents.
func New(docs store.DocumentStore) *Store { return &Store{docs} }

// Get returns a file that is complete. store.ErrNotFound.
func (s *Store) Get(ctx context.Context, id string) (*File, error) {
	d, err := s.docs.Document(ctx, Kind, id)
	if err != nil {
		return nil, err
	}
	f, err := fileOf(&d)
	if err == nil && !f.Ready {
		return nil, fmt.Errorf("read file %s: %w", id, store.ErrNotFound)
	}
	return f, err
}

func fileOf(d *store.Document) (*File, error) {
	f := &File{}
	err := json.Unmarshal(d.Body, f)
	f.ID, f.User, f.version = d.ID, d.User, d.Version
	return f, err
}

// List returns the complete files of a user, those that are older first; "" lists those of all users.
func (s *Store) List(ctx context.Context, user string) ([]*File, error) {
	out := []*File{}
	for after := ""; ; {
		list, err := s.docs.Documents(ctx, store.DocumentFilter{Kind: Kind, User: user, After: after, Limit: 500})
		if err != nil {
			return nil, err
		}
		for i := range list {
			f, err := fileOf(&list[i])
			if err != nil {
				return nil, err
			}
			if after = f.ID; f.Ready {
				out = append(out, f)
			}
		}
		if len(list) < 500 {
			return out, nil
		}
	}
}

// put keeps a file; due is when Sweep looks at it.
func (s *Store) put(ctx context.Context, f *File, due time.Time) error {
	body, err := json.Marshal(f)
	if err != nil {
		return err
	}
	d, err := s.docs.PutDocument(ctx, store.Document{Kind: Kind, ID: f.ID, User: f.User, Version: f.version, Body: body, Due: due})
	f.version = d.Version
	return err
}

// Change keeps the purpose and the time of a file that was created.
func (s *Store) Change(ctx context.Context, f *File) error { return s.put(ctx, f, f.Expires) }

// Delete deletes a file with its content. Runs that used it keep their copies. store.ErrNotFound.
func (s *Store) Delete(ctx context.Context, id string) error {
	for _, kind := range []string{UseKind, PieceKind} {
		for {
			list, err := s.docs.Documents(ctx, store.DocumentFilter{Kind: kind, Prefix: id + "/", Limit: 20})
			if err != nil {
				return err
			}
			for i := range list {
				if err := s.docs.DeleteDocument(ctx, kind, list[i].ID, 0); err != nil && !errors.Is(err, store.ErrNotFound) {
					return err
				}
			}
			if len(list) < 20 {
				break
			}
		}
	}
	return s.docs.DeleteDocument(ctx, Kind, id, 0)
}

// Use records that a run or session has used a file: the file exists as long as that does.
func (s *Store) Use(ctx context.Context, f *File, by string) error {
	_, err := s.docs.PutDocument(ctx, store.Document{Kind: UseKind, ID: f.ID + "/" + by, User: f.User, Run: by, Body: json.RawMessage("{}")})
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}

// Sweep deletes some of the files that have expired and that nothing uses, and uploads that were not completed.
func (s *Store) Sweep(ctx context.Context) error {
	list, err := s.docs.ClaimDocuments(ctx, Kind, time.Hour, sweepLimit)
	for i := range list {
		err = errors.Join(err, s.sweep(ctx, &list[i]))
	}
	return err
}

func (s *Store) sweep(ctx context.Context, d *store.Document) error {
	f, err := fileOf(d)
	if err != nil {
		return err
	}
	if f.Ready {
		uses, err := s.docs.Documents(ctx, store.DocumentFilter{Kind: UseKind, Prefix: f.ID + "/", Limit: 1})
		if err != nil {
			return err
		}
		if len(uses) > 0 {
			return ignoreChanged(s.put(ctx, f, time.Now().Add(againTime)))
		}
	}
	return ignoreChanged(s.Delete(ctx, f.ID))
}

// ignoreChanged drops the errors of a file that another process has deleted or looked at.
func ignoreChanged(err error) error {
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrChanged) {
		return nil
	}
	return err
}
