package e2btest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxForm bounds what of an upload is kept in memory, in bytes.
const maxForm = 32 << 20

// requireToken finds the sandbox that a request is for by its headers, and lets
// through who has its token. A sandbox that is gone is a gateway's error.
func (s *Server) requireToken(next func(http.ResponseWriter, *http.Request, *cloudSandbox)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("E2b-Sandbox-Id")
		s.mu.Lock()
		b := s.boxes[id]
		s.mu.Unlock()
		switch port, _ := strconv.Atoi(r.Header.Get("E2b-Sandbox-Port")); {
		case b == nil:
			answer(w, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": "The sandbox was not found", "code": http.StatusBadGateway})
		case port != portOf(r.URL.Path):
			answer(w, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": "The sandbox is running but port is not open", "code": http.StatusBadGateway})
		case r.Header.Get("X-Access-Token") != b.token:
			http.Error(w, `{"code":401,"message":"unauthenticated"}`, http.StatusUnauthorized)
		default:
			next(w, r, b)
		}
	}
}

// portOf returns where a path is answered.
func portOf(path string) int {
	if path == "/execute" {
		return 49999
	}
	return 49983
}

// at returns where a path of the sandbox is: from the user's home, which is the
// sandbox's folder.
func (b *cloudSandbox) at(path string) string {
	path = strings.TrimPrefix(path, "/home/user")
	return filepath.Join(b.dir, filepath.Clean("/"+path))
}

func (s *Server) download(w http.ResponseWriter, r *http.Request, b *cloudSandbox) {
	path := r.URL.Query().Get("path")
	data, err := os.ReadFile(b.at(path))
	if err != nil {
		fail(w, http.StatusNotFound, "path '"+path+"' does not exist")
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(data)
}

func (s *Server) upload(w http.ResponseWriter, r *http.Request, b *cloudSandbox) {
	if f := s.currentHooks().upload; f != nil {
		defer f(b.ID)
	}
	path := r.URL.Query().Get("path")
	written := []map[string]any{}
	keep := func(path string, from io.Reader) error {
		to := b.at(path)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		f, err := os.Create(to)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, from)
		written = append(written, map[string]any{"path": path, "name": filepath.Base(path), "type": "file"})
		return errorsOf(err, f.Close())
	}
	var err error
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		err = uploadForm(r, path, keep)
	} else {
		err = keep(path, r.Body)
	}
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer(w, http.StatusOK, written)
}

// uploadForm keeps the files of a form, a single one under the path of the
// request, others under their own.
func uploadForm(r *http.Request, path string, keep func(string, io.Reader) error) error {
	form, err := r.MultipartReader()
	if err != nil {
		return err
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		to := path
		if to == "" {
			to = nameOf(part.Header.Get("Content-Disposition"))
		}
		if err := keep(to, io.LimitReader(part, maxForm)); err != nil {
			return err
		}
	}
}

func errorsOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}
