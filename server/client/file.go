package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
)

// File is an uploaded file.
type File struct {
	ID   string `json:"id"`
	Name string `json:"filename"`
	// Type is the media type, which the server finds from the content.
	Type    string `json:"type"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	Created int64  `json:"created_at"` // Unix seconds
	// Expires is when the file is deleted, in Unix seconds, unless a run or session that used it still exists.
	Expires int64 `json:"expires_at"`
}

// Upload uploads a file, whose content is held in memory. As an input of type file it is {"file_id": ID}.
func (c *Client) Upload(ctx context.Context, name string, content io.Reader) (*File, error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = io.Copy(part, content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("upload %s: %w", name, err)
	}
	r, err := c.request(ctx, http.MethodPost, "/v1/files", &form)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", w.FormDataContentType())
	answer, err := c.http().Do(r)
	if err != nil {
		return nil, fmt.Errorf("upload %s: %w", name, err)
	}
	defer answer.Body.Close()
	if err := errorOf(answer); err != nil {
		return nil, fmt.Errorf("upload %s: %w", name, err)
	}
	var f File
	if err := json.NewDecoder(answer.Body).Decode(&f); err != nil {
		return nil, fmt.Errorf("upload %s: %w", name, err)
	}
	return &f, nil
}

// Files lists the files of the user of the token, newest first.
func (c *Client) Files(ctx context.Context) ([]File, error) {
	var out struct{ Data []File }
	err := c.Do(ctx, http.MethodGet, "/v1/files", nil, &out)
	return out.Data, err
}

// Download reads at most length bytes of a file from offset on; the length 0 reads to the end.
func (c *Client) Download(ctx context.Context, file string, offset, length int64) ([]byte, error) {
	return c.bytes(ctx, "/v1/files/"+url.PathEscape(file)+"/content", offset, length)
}

// DeleteFile deletes a file. Runs that used it keep what they were given.
func (c *Client) DeleteFile(ctx context.Context, file string) error {
	return c.Do(ctx, http.MethodDelete, "/v1/files/"+url.PathEscape(file), nil, nil)
}
