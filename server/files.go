package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/server/filestore"
	"github.com/weir-run/weir/store"
)

// MaxFileLimit is the most that Options.MaxFile may be: a value of a run has at most 128 MiB, in base64.
const MaxFileLimit = 64 << 20

// Bounds of files.
const (
	defaultMaxFile = 32 << 20
	// maxFiles and maxFileBytes bound what a user has.
	maxFiles     = 1000
	maxFileBytes = 1 << 30
	// maxFormField bounds the text fields of an upload, and maxForm what an upload has besides the content.
	maxFormField = 1 << 10
	maxForm      = 64 << 10
	// defaultFileTime is when a file expires whose upload does not say; minFileTime and maxFileTime bound what an upload says.
	defaultFileTime = 7 * 24 * time.Hour
	minFileTime     = time.Hour
	maxFileTime     = 30 * 24 * time.Hour
)

// fileRow is a file in an answer: the object of OpenAI's API, with the type and the digest.
type fileRow struct {
	ID       string `json:"id"`
	Object   string `json:"object" doc:"Always file"`
	Bytes    int64  `json:"bytes"`
	Created  int64  `json:"created_at" doc:"Unix seconds"`
	Expires  int64  `json:"expires_at" doc:"Unix seconds: when the file is deleted, unless a run or session that used it still exists"`
	Filename string `json:"filename"`
	Purpose  string `json:"purpose"`
	Status   string `json:"status" doc:"Always processed"`
	Type     string `json:"type" doc:"The media type, found from the content"`
	SHA256   string `json:"sha256" doc:"Of the content, in hexadecimal digits"`
}

// fileList is a page of files.
type fileList struct {
	Object  string    `json:"object" doc:"Always list"`
	Data    []fileRow `json:"data"`
	HasMore bool      `json:"has_more"`
	FirstID string    `json:"first_id"`
	LastID  string    `json:"last_id"`
}

// deletedFile is the answer to a deletion.
type deletedFile struct {
	ID      string `json:"id"`
	Object  string `json:"object" doc:"Always file"`
	Deleted bool   `json:"deleted"`
}

func fileRowOf(f *filestore.File) fileRow {
	return fileRow{f.ID, "file", f.Size, f.Created.Unix(), f.Expires.Unix(), f.Name, f.Purpose, "processed", f.Type, f.SHA256}
}

// fileProblem is a problem that clients of OpenAI's API read too.
type fileProblem struct {
	*Problem
	Error fileError `json:"error"`
}

type fileError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

func failFile(w http.ResponseWriter, p *Problem) {
	e := fileError{Message: p.Detail, Type: "invalid_request_error", Code: p.Code}
	switch {
	case p.Status == http.StatusUnauthorized:
		e.Type = "authentication_error"
	case p.Status == http.StatusForbidden:
		e.Type = "permission_error"
	case p.Status >= http.StatusInternalServerError:
		e.Type = "server_error"
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	data, err := json.Marshal(fileProblem{p, e})
	if err == nil {
		_, _ = w.Write(data) // the client has gone if it fails
	}
}

// fileRoute adds a route of files, whose errors are problems that clients of OpenAI's API read too.
func (s *Server) fileRoute(pattern string, scope Scope, h func(w http.ResponseWriter, r *http.Request, c *call) error) {
	s.routes.fail[pattern] = failFile
	s.routes.handle(pattern, scope, func(w http.ResponseWriter, r *http.Request) {
		who, _ := r.Context().Value(principalKey{}).(principal)
		if err := h(w, r, &call{r.Context(), s, who}); err != nil {
			p := problemOf(err)
			who.action.Failed(p.Code)
			if p.Status == http.StatusInternalServerError {
				s.logger.ErrorContext(r.Context(), "request failed", "code", p.Code, "error", err)
			}
			failFile(w, p)
		}
	})
}

func (s *Server) registerFiles() {
	const upload = "POST /v1/files"
	s.routes.uploads[upload] = true
	s.fileRoute(upload, Start, createFile)
	s.fileRoute("GET /v1/files", Read, listFiles)
	s.fileRoute("GET /v1/files/{file}", Read, getFile)
	s.fileRoute("GET /v1/files/{file}/content", Read, getFileContent)
	s.fileRoute("DELETE /v1/files/{file}", Start, deleteFile)
	s.describeFiles()
}

// file reads a file that the caller may see. Another user's file is not found.
func (c *call) file(id string) (*filestore.File, error) {
	f, err := c.files.Get(c, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !c.who.owns(f.User) {
		return nil, notFound("file", id)
	}
	return f, err
}

func writeFileJSON(w http.ResponseWriter, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the client has gone if it fails
	return nil
}

func createFile(w http.ResponseWriter, r *http.Request, c *call) error {
	if c.who.user != "" {
		defer c.calls.enter("upload " + c.who.user)()
	}
	room, err := c.fileRoom()
	if err != nil {
		return err
	}
	f, err := c.upload(r, room)
	if err != nil {
		return err
	}
	made, err := c.once("createFile", r.Header.Get("Idempotency-Key"), []any{f.Name, f.Purpose, f.SHA256}, func(string) (string, error) { return f.ID, nil })
	if err != nil || made != f.ID { // sent before
		err = errors.Join(err, c.files.Delete(context.WithoutCancel(c), f.ID))
		if err == nil {
			f, err = c.file(made)
		}
	}
	if err != nil {
		return err
	}
	return writeFileJSON(w, fileRowOf(f))
}

// fileRoom returns how large the next file of the caller may be. The owner of the process is not bounded by what there is.
func (c *call) fileRoom() (int64, error) {
	if c.who.user == "" {
		return c.options.MaxFile, nil
	}
	list, err := c.files.List(c, c.who.user)
	if err != nil {
		return 0, err
	}
	room := int64(maxFileBytes)
	for _, f := range list {
		room -= f.Size
	}
	if len(list) >= maxFiles || room <= 0 {
		p := newProblem(http.StatusConflict, engine.CodeTooMany, fmt.Sprintf("you have %d files, at most %d with %d bytes are allowed", len(list), maxFiles, maxFileBytes))
		p.Hint = "delete files first"
		return 0, p
	}
	return min(room, c.options.MaxFile), nil
}

// upload reads the form of an upload and stores its content.
func (c *call) upload(r *http.Request, room int64) (*filestore.File, error) {
	form, err := r.MultipartReader()
	if err != nil {
		return nil, invalidRequest("body", "the body is not a form with a file: "+err.Error())
	}
	f := &filestore.File{ID: "file-" + runner.NewID(), User: c.who.user, Purpose: "user_data", Created: time.Now().UTC().Truncate(time.Second)}
	f.Expires = f.Created.Add(defaultFileTime)
	stored := false
	for {
		p, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && p.FormName() == "file" && stored {
			err = invalidRequest("body.file", "the form has more than one file")
		}
		switch {
		case err != nil:
		case p.FormName() == "file":
			f.Name = fileName(p)
			err = c.files.Create(context.WithoutCancel(c), f, p, room)
			stored = err == nil
		default:
			err = readField(f, p)
		}
		if err != nil {
			if stored {
				err = errors.Join(err, c.files.Delete(context.WithoutCancel(c), f.ID))
			}
			return nil, uploadProblem(err, room)
		}
	}
	if !stored {
		return nil, invalidRequest("body.file", "the form has no field file with a file")
	}
	// The other fields may come after the content.
	return f, c.files.Change(context.WithoutCancel(c), f)
}

// uploadProblem returns the problem of an upload that was refused.
func uploadProblem(err error, room int64) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large || errors.Is(err, filestore.ErrSize) {
		return newProblem(http.StatusRequestEntityTooLarge, engine.CodeRequestTooLarge, "the file may have at most "+itoa(room)+" bytes")
	}
	switch {
	case errors.Is(err, filestore.ErrType):
		return newProblem(http.StatusUnsupportedMediaType, engine.CodeRequest, err.Error())
	case errors.Is(err, filestore.ErrEmpty):
		return invalidRequest("body.file", err.Error())
	case errors.Is(err, filestore.ErrCut), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, multipart.ErrMessageTooLarge):
		return invalidRequest("body", "the form cannot be read: "+err.Error())
	}
	if strings.HasPrefix(err.Error(), "multipart:") {
		return invalidRequest("body", "the form cannot be read: "+err.Error())
	}
	return err
}

// fileName returns the name of an uploaded file without folders and control characters, at most 255 bytes.
func fileName(p *multipart.Part) string {
	name := path.Base(strings.ReplaceAll(p.FileName(), `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	for len(name) > 255 {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	if name == "" || name == "." || name == ".." || name == "/" {
		return "file"
	}
	return name
}

// readField reads a text field of an upload.
func readField(f *filestore.File, p *multipart.Part) error {
	name := p.FormName()
	data, err := io.ReadAll(io.LimitReader(p, maxFormField+1))
	if err != nil {
		return err
	}
	text := string(data)
	switch {
	case len(data) > maxFormField:
		return invalidRequest("body."+name, "the field is too long")
	case name == "purpose":
		if f.Purpose = text; !slices.Contains([]string{"user_data", "vision", "assistants"}, text) {
			return invalidRequest("body.purpose", "files are inputs: expected user_data, vision or assistants")
		}
	case name == "expires_after[anchor]":
		if text != "created_at" {
			return invalidRequest("body.expires_after.anchor", "expected created_at")
		}
	case name == "expires_after[seconds]":
		n, err := strconv.ParseInt(text, 10, 32)
		after := time.Duration(n) * time.Second
		if err != nil || after < minFileTime || after > maxFileTime {
			return invalidRequest("body.expires_after.seconds", fmt.Sprintf("expected %d to %d seconds", minFileTime/time.Second, maxFileTime/time.Second))
		}
		f.Expires = f.Created.Add(after)
	default:
		return invalidRequest("body."+name, "an upload has no field "+quoted(name))
	}
	return nil
}

func getFile(w http.ResponseWriter, r *http.Request, c *call) error {
	f, err := c.file(r.PathValue("file"))
	if err != nil {
		return err
	}
	return writeFileJSON(w, fileRowOf(f))
}

// getFileContent sends the content of a file, or a range of it. Browsers save it and never show it.
func getFileContent(w http.ResponseWriter, r *http.Request, c *call) error {
	f, err := c.file(r.PathValue("file"))
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", f.Type)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	h.Set("ETag", `"`+f.SHA256[:32]+`"`)
	http.ServeContent(&longWriter{w, newLongAnswer(w)}, r, "", time.Time{}, c.files.Open(c, f))
	return nil
}

func deleteFile(w http.ResponseWriter, r *http.Request, c *call) error {
	f, err := c.file(r.PathValue("file"))
	if err == nil {
		err = c.files.Delete(context.WithoutCancel(c), f.ID)
	}
	if errors.Is(err, store.ErrNotFound) {
		err = notFound("file", r.PathValue("file"))
	}
	if err != nil {
		return err
	}
	return writeFileJSON(w, deletedFile{f.ID, "file", true})
}
