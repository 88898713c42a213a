package vendorapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// maxEvent limits one line and one event of a stream, in bytes. The longest are finished responses and media in
// base64.
const maxEvent = 32 << 20

var errEventTooLong = errors.New("an event of the stream is too long")

// eventReader reads the data of server-sent events (WHATWG HTML, 9.2.6). Names of events are ignored, because every
// vendor repeats them in the data. A line ends with LF, CR LF or CR.
type eventReader struct {
	in *bufio.Reader
	// firstLineRead: the first line, which may begin with a BOM, was read.
	firstLineRead bool
	// skipLF: the last line ended with CR, which an LF may follow.
	skipLF bool
	line   []byte
}

func newEvents(in io.Reader) *eventReader { return &eventReader{in: bufio.NewReaderSize(in, 16<<10)} }

// next returns the data of the next event with data, without surrounding white space, or the error that ended the
// stream. The data is valid until the next call. Some servers omit the last empty line, so an event that the end of
// the stream cuts off is returned if it is complete: JSON, or the end mark.
func (e *eventReader) next() ([]byte, error) {
	var data []byte
	for {
		line, err := e.readLine()
		if value, ok := dataField(line); ok {
			if len(data)+len(value) > maxEvent {
				return nil, errEventTooLong
			}
			data = append(append(data, value...), '\n')
		}
		if err != nil {
			return lastEvent(bytes.TrimSpace(data), err)
		}
		if len(line) > 0 {
			continue
		}
		if data = bytes.TrimSpace(data); len(data) > 0 {
			return data, nil
		}
	}
}

// lastEvent returns the pending event after err ended the stream.
func lastEvent(data []byte, err error) ([]byte, error) {
	if errors.Is(err, io.EOF) && (isDone(data) || json.Valid(data)) {
		return data, nil
	}
	return nil, err
}

// dataField returns the value of a line with the field data.
func dataField(line []byte) ([]byte, bool) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	return bytes.TrimPrefix(value, []byte(" ")), string(name) == "data"
}

func isDone(data []byte) bool { return string(data) == "[DONE]" }

// readLine returns a line without its end, also one that an error cut off.
func (e *eventReader) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		if _, err := e.in.Peek(1); err != nil {
			return e.text(), err
		}
		ready, err := e.in.Peek(e.in.Buffered())
		if err != nil {
			return e.text(), err
		}
		if e.skipLF {
			e.skipLF = false
			if ready[0] == '\n' {
				e.discard(1)
				continue
			}
		}
		end := bytes.IndexByte(ready, '\n')
		if end < 0 {
			end = len(ready)
		}
		if cr := bytes.IndexByte(ready[:end], '\r'); cr >= 0 {
			end = cr
		}
		if len(e.line)+end > maxEvent {
			return nil, errEventTooLong
		}
		e.line = append(e.line, ready[:end]...)
		if end == len(ready) {
			e.discard(end)
			continue
		}
		e.skipLF = ready[end] == '\r'
		e.discard(end + 1)
		return e.text(), nil
	}
}

// discard removes n peeked bytes.
func (e *eventReader) discard(n int) { _, _ = e.in.Discard(n) } // they are in the buffer

// text returns the line; for the stream's first line, without a BOM.
func (e *eventReader) text() []byte {
	if e.firstLineRead {
		return e.line
	}
	e.firstLineRead = true
	return bytes.TrimPrefix(e.line, []byte("\ufeff"))
}
