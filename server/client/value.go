package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Truncated is a value that an answer leaves out because of its size.
type Truncated struct {
	// Place is where in the answer it belongs, as a JSON Pointer.
	Place string `json:"place"`
	// Size is in bytes: of the text or data of a message, of the JSON of any other value.
	Size    int    `json:"size"`
	Excerpt string `json:"excerpt"` // the beginning
	URL     string `json:"url"`
}

// Value reads a value that an answer has left out: JSON, or the bytes of an image or file. It reads at most length bytes from
// offset on; the length 0 reads to the end.
func (c *Client) Value(ctx context.Context, v Truncated, offset, length int64) ([]byte, error) {
	return c.bytes(ctx, v.URL, offset, length)
}

// bytes reads a range of an answer. An address without a host is one of the server, below its base path.
func (c *Client) bytes(ctx context.Context, path string, offset, length int64) ([]byte, error) {
	r, err := c.request(ctx, http.MethodGet, c.below(path), nil)
	if err != nil {
		return nil, err
	}
	switch {
	case length > 0:
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case offset > 0:
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	answer, err := c.http().Do(r)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	defer answer.Body.Close()
	if err := errorOf(answer); err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	if r.Header.Get("Range") != "" && answer.StatusCode != http.StatusPartialContent {
		return nil, fmt.Errorf("GET %s: the server sends no ranges", path)
	}
	return io.ReadAll(answer.Body)
}

// below removes the base path, which the address of the client has too.
func (c *Client) below(path string) string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return path
	}
	return strings.TrimPrefix(path, strings.TrimRight(u.Path, "/"))
}
