package trigger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/weir-run/weir/store"
)

const (
	// filePoll is how often a process looks into a folder, and how long size and time of a file must stay what they are.
	filePoll = 5 * time.Second
	// fileRetry is when a folder is looked into again that could not be read, or for whose user nothing may start.
	fileRetry = time.Minute
	// fileKeep is how long a file that has gone is remembered.
	fileKeep = 30 * 24 * time.Hour
	// MaxFiles is how many files a folder may have.
	MaxFiles = 10_000
	// scanTime bounds how long a look starts runs, within the time of a claim.
	scanTime = claimTime / 2
	// waits begins LastError while nothing can start, in distinction to a file that has started nothing.
	waits = "waits: "
)

// ErrLater is wrapped by errors of Options.Start and Options.Folder that say why nothing starts at present: the same file is
// tried again.
var ErrLater = errors.New("it is tried again")

// Folder is a folder of the configuration.
type Folder struct {
	Path string
	// MaxSize is how many bytes a file may have.
	MaxSize int64
}

// File is what a run is started with.
type File struct {
	Name   string
	SHA256 string
	Data   []byte
}

// The states of a FileRecord.
const (
	fileSeen    = "seen"
	fileStarted = "started"
	fileRefused = "refused"
)

// FileRecord says what became of a file of a folder.
type FileRecord struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	State    string    `json:"state" enum:"seen,started,refused" doc:"seen is a file that may still be written"`
	SHA256   string    `json:"sha256,omitempty" doc:"Of the content, in hexadecimal digits"`
	Run      string    `json:"run,omitempty" doc:"The run that it has started"`
	Error    string    `json:"error,omitempty" doc:"Why it started none"`
	At       time.Time `json:"at" doc:"When this was found"`

	version int64
	gone    bool // the document has a time at which it is deleted
}

// scan is one look into the folder of a trigger.
type scan struct {
	r       *Runner
	t       *Trigger
	folder  Folder
	root    *os.Root
	records map[string]*FileRecord
	until   time.Time
	now     time.Time
	// open: there is a file of which it is not known what becomes of it.
	open bool
}

// scanFolder looks into the folder of a trigger and starts runs by the files that are complete.
func (r *Runner) scanFolder(ctx context.Context, t *Trigger) error {
	wait, err := filePoll, error(nil)
	if strings.HasPrefix(t.LastError, waits) {
		t.LastError = ""
	}
	folder, later := r.o.Folder(ctx, t)
	if later == nil {
		later, err = r.scanOnce(ctx, t, folder)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err // the claim ends, and the folder is looked into again
	case later != nil:
		t.LastError = waits + later.Error()
		wait = fileRetry
	}
	if err := r.save(ctx, t, r.o.Clock().Add(wait)); err != nil && !errors.Is(err, store.ErrChanged) && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil // a change meanwhile says itself when the trigger is due
}

// scanOnce looks into a folder. later says why nothing starts at present; err is a failure of the store.
func (r *Runner) scanOnce(ctx context.Context, t *Trigger, folder Folder) (later, err error) {
	root, later := os.OpenRoot(folder.Path)
	if later != nil {
		return later, nil
	}
	defer root.Close() //nolint:errcheck // it was only read
	list, later := listFolder(root, t.Pattern)
	if later != nil {
		return later, nil
	}
	digest := digestOf(list)
	if r.isSettled(t.ID, digest) {
		return nil, nil
	}
	s := &scan{r: r, t: t, folder: folder, root: root, now: r.o.Clock(), until: time.Now().Add(scanTime)}
	if s.records, err = r.records(ctx, t.ID); err != nil {
		return nil, err
	}
	for i := range list {
		later, err := s.look(ctx, &list[i])
		if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
			return nil, nil // another process looks into the folder as well
		}
		if later != nil || err != nil {
			return later, err
		}
	}
	if err := s.forget(ctx, list); err != nil {
		return nil, err
	}
	if !s.open {
		r.settle(t.ID, digest)
	}
	return nil, nil
}

// look does what is to be done about a file.
func (s *scan) look(ctx context.Context, f *listed) (later, err error) {
	rec := s.records[f.name]
	if rec == nil {
		rec = &FileRecord{Name: f.name}
	}
	same := rec.version > 0 && rec.Size == f.size && rec.Modified.Equal(f.modified)
	switch {
	case f.refused != "" && (!same || rec.State != fileRefused || rec.gone):
		return nil, s.refuse(ctx, rec, f, f.refused)
	case f.refused != "" || same && rec.State != fileSeen && !rec.gone:
		return nil, nil
	case f.size == 0: // a file that is being made often has nothing yet
		return nil, nil
	case same && rec.State != fileSeen:
		return nil, s.keep(ctx, rec, f, rec.State, rec.Error)
	}
	s.open = true
	switch {
	case !same:
		return nil, s.keep(ctx, rec, f, fileSeen, "")
	case s.now.Sub(rec.At) < filePoll || time.Now().After(s.until):
		return nil, nil
	case f.size > s.folder.MaxSize:
		return nil, s.refuse(ctx, rec, f, fmt.Sprintf("the file has more than %d bytes", s.folder.MaxSize))
	}
	return s.fire(ctx, rec, f)
}

// fire starts the run of a file that is complete.
func (s *scan) fire(ctx context.Context, rec *FileRecord, f *listed) (later, err error) {
	if s.t.Overlap == overlapQueue && s.t.LastRun != "" {
		ended, err := s.r.o.Ended(ctx, s.t.LastRun)
		if err != nil || !ended {
			return nil, err
		}
	}
	data, err := s.read(f)
	if errors.Is(err, errUnfinished) {
		return nil, s.keep(ctx, rec, f, fileSeen, "")
	}
	if err != nil {
		s.t.LastError = waits + err.Error()
		return nil, nil //nolint:nilerr // it may not be readable yet
	}
	sum := sha256.Sum256(data)
	rec.SHA256 = hex.EncodeToString(sum[:])
	firing := Firing{
		Run:  s.r.runID(s.t, fmt.Sprint("file ", f.size, " ", rec.SHA256, " ", f.name)),
		File: &File{Name: f.name, SHA256: rec.SHA256, Data: data},
	}
	err = s.r.fire(ctx, s.t, firing)
	if errors.Is(err, ErrLater) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	if refused := s.t.LastError; refused != "" {
		return nil, s.refuse(ctx, rec, f, refused)
	}
	rec.Run = firing.Run
	return nil, s.keep(ctx, rec, f, fileStarted, "")
}

// refuse records that a file starts no run.
func (s *scan) refuse(ctx context.Context, rec *FileRecord, f *listed, reason string) error {
	s.t.LastError = f.name + ": " + reason
	rec.Run = ""
	return s.keep(ctx, rec, f, fileRefused, reason)
}

// errUnfinished: the file was changed while it was read.
var errUnfinished = errors.New("the file is being written")

// read returns the content of a file if it is what was listed before and after.
func (s *scan) read(f *listed) ([]byte, error) {
	file, err := s.root.OpenFile(f.name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO that has its name by now does not block
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	same := func() bool {
		i, err := file.Stat()
		return err == nil && os.SameFile(i, f.info) && i.Mode().IsRegular() && i.Size() == f.size && i.ModTime().Equal(f.modified)
	}
	if !same() {
		return nil, errUnfinished
	}
	data, err := io.ReadAll(io.LimitReader(file, s.folder.MaxSize+1))
	if err != nil {
		return nil, err
	}
	if !same() || int64(len(data)) != f.size {
		return nil, errUnfinished
	}
	return data, nil
}

// keep records what became of a file.
func (s *scan) keep(ctx context.Context, rec *FileRecord, f *listed, state, reason string) error {
	rec.Size, rec.Modified, rec.State, rec.Error = f.size, f.modified, state, reason
	if rec.At = s.now.UTC(); state == fileSeen {
		rec.SHA256, rec.Run = "", ""
	}
	return s.r.putRecord(ctx, s.t, rec, time.Time{})
}

// forget gives the records of files that have gone a time at which they are deleted.
func (s *scan) forget(ctx context.Context, list []listed) error {
	for i := range list {
		delete(s.records, list[i].name)
	}
	for _, rec := range s.records { // order: each by itself
		if rec.gone {
			continue
		}
		err := s.r.putRecord(ctx, s.t, rec, s.now.Add(fileKeep))
		if err != nil && !errors.Is(err, store.ErrChanged) && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

func (r *Runner) putRecord(ctx context.Context, t *Trigger, rec *FileRecord, due time.Time) error {
	body, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	d, err := r.o.Store.PutDocument(ctx, store.Document{
		Kind: store.TriggerFileKind, ID: t.ID + "/" + rec.Name, User: t.User, Version: rec.version, Body: body, Due: due,
	})
	rec.version = d.Version
	return err
}

// records returns the records of the files of a trigger by name.
func (r *Runner) records(ctx context.Context, trigger string) (map[string]*FileRecord, error) {
	out := make(map[string]*FileRecord)
	for after := ""; ; {
		list, err := r.Files(ctx, trigger, after, 500)
		if err != nil || len(list) == 0 {
			return out, err
		}
		for _, rec := range list {
			out[rec.Name] = rec
		}
		after = list[len(list)-1].Name
	}
}

// Files lists the records of the files of a trigger by name, behind after.
func (r *Runner) Files(ctx context.Context, trigger, after string, limit int) ([]*FileRecord, error) {
	if after != "" {
		after = trigger + "/" + after
	}
	list, err := r.o.Store.Documents(ctx, store.DocumentFilter{Kind: store.TriggerFileKind, Prefix: trigger + "/", After: after, Limit: limit})
	if err != nil {
		return nil, err
	}
	out := make([]*FileRecord, 0, len(list))
	for i := range list {
		rec := &FileRecord{version: list[i].Version, gone: !list[i].Due.IsZero()}
		if err := json.Unmarshal(list[i].Body, rec); err != nil {
			return nil, fmt.Errorf("read the record of file %s: %w", list[i].ID, err)
		}
		out = append(out, rec)
	}
	return out, nil
}

// deleteRecords deletes the records of the files of a trigger.
func (r *Runner) deleteRecords(ctx context.Context, trigger string) error {
	for {
		list, err := r.o.Store.Documents(ctx, store.DocumentFilter{Kind: store.TriggerFileKind, Prefix: trigger + "/", Limit: 500})
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			if err := r.o.Store.DeleteDocument(ctx, store.TriggerFileKind, list[i].ID, 0); err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
	}
}

// isSettled reports whether this process has seen the folder of a trigger as it is, with nothing left to do.
func (r *Runner) isSettled(trigger, digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settled[trigger] == digest
}

func (r *Runner) settle(trigger, digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled == nil || len(r.settled) > 1000 { // of triggers that were deleted
		r.settled = make(map[string]string)
	}
	r.settled[trigger] = digest
}
