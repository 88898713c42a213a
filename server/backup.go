package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/store"
)

// Backups say where backups of the database are written, and when.
type Backups struct {
	// Folder is where they are; "" refuses backups. No request can name another place.
	Folder string
	// Every is how long after a scheduled backup the next one is due; 0 makes none by itself. Of several processes
	// on the store, one makes it.
	Every time.Duration
	// Keep is how many backups stay in the folder: each new one deletes the oldest beyond that. 0 keeps all.
	Keep int
}

// checkBackups refuses a schedule by which no backups would be made.
func (o *Options) checkBackups() error {
	if o.Backups.Every > 0 && o.App.Backup == nil {
		return errors.New("server.backup.every: this database is not backed up by Weir: a PostgreSQL database is backed up with its own tools, such as pg_dump")
	}
	return nil
}

const (
	// backupKind is the kind of the document that makes scheduled backups due.
	backupKind = "backup_job"
	// backupWait is how long a request waits for its backup, and backupClaim how long a process has for one.
	backupWait  = time.Minute
	backupClaim = 6 * time.Hour
)

// backupName matches the names of backups, which begin with their time.
func backupName(name string) bool {
	return regexp.MustCompile(`^weir-\d{8}T\d{6}\.\d{3}Z\.db$`).MatchString(name)
}

// backupWriter writes one backup at a time. mu guards running.
type backupWriter struct {
	mu      sync.Mutex
	running *backupWork // nil for none
	all     sync.WaitGroup
}

// backupWork is a backup that is being written. file and err are set when done is closed, and not to be read before.
type backupWork struct {
	at   time.Time // when it was begun
	done chan struct{}
	file backupFile
	err  error
}

// backupFile is a backup in the folder.
type backupFile struct {
	File  string    `json:"file" doc:"The name of the file in the folder of backups; empty while it is being written"`
	Bytes int64     `json:"bytes"`
	At    time.Time `json:"at" doc:"When it was begun"`
}

type backupAnswer struct {
	Status int
	Body   backupFile
}

type backupList struct {
	Backups   []backupFile `json:"backups" doc:"The newest first"`
	Next      *time.Time   `json:"next,omitempty" doc:"When the next scheduled one is due"`
	LastError string       `json:"lastError" doc:"Why the last scheduled one failed; empty if it did not"`
}

func (s *Server) registerBackups() {
	register(s, operation{
		id: "makeBackup", method: http.MethodPost, path: "/v1/backup", scope: Admin, status: http.StatusCreated, tags: []string{"operation"},
		summary: "Write a backup of the database to the folder of backups, while runs continue",
		description: "The server's configuration names the folder. A request during a backup waits for that. After a minute the answer is 202, and the backup is written to its end. " +
			"Of a PostgreSQL database the database's own tools make backups.",
	}, makeBackup)
	register(s, operation{
		id: "listBackups", method: http.MethodGet, path: "/v1/backups", scope: Admin, tags: []string{"operation"}, summary: "List the backups in the folder",
	}, listBackups)
}

// canBackUp returns the refusal of a server that makes no backups.
func (s *Server) canBackUp() error {
	switch {
	case s.app.Backup == nil:
		p := newProblem(http.StatusNotImplemented, engine.CodeStoreUnsupported, "this database is not backed up by Weir")
		p.Hint = "a PostgreSQL database is backed up with its own tools, such as pg_dump"
		return p
	case s.options.Backups.Folder == "":
		p := newProblem(http.StatusConflict, engine.CodeStatusConflict, "the server has no folder for backups")
		p.Hint = "set server.backup.folder in the configuration"
		return p
	}
	return nil
}

func makeBackup(c *call, _ *struct{}) (*backupAnswer, error) {
	if err := c.canBackUp(); err != nil {
		return nil, err
	}
	w := c.startBackup()
	wait := time.NewTimer(backupWait)
	defer wait.Stop()
	select {
	case <-w.done:
		if w.err != nil {
			return nil, w.err
		}
		if err := c.about("made", w.file.File); err != nil {
			return nil, err
		}
		return &backupAnswer{http.StatusCreated, w.file}, nil
	case <-wait.C:
	case <-c.Done():
	}
	return &backupAnswer{http.StatusAccepted, backupFile{At: w.at}}, nil
}

// startBackup starts a backup, unless one is being written, and returns it. It ends when the server drains.
func (s *Server) startBackup() *backupWork {
	b := &s.backups
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running != nil {
		return b.running
	}
	at := time.Now().UTC().Truncate(time.Millisecond)
	w := &backupWork{at: at, done: make(chan struct{})}
	b.running = w
	b.all.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		file, err := s.writeBackup(s.untilDrain(ctx), at)
		b.mu.Lock()
		b.running = nil
		b.mu.Unlock()
		w.err = err
		if err == nil {
			w.file = file
		}
		close(w.done)
	})
	return w
}

// writeBackup writes a backup, and deletes the oldest beyond those that are kept.
func (s *Server) writeBackup(ctx context.Context, at time.Time) (backupFile, error) {
	f := backupFile{File: "weir-" + at.Format("20060102T150405.000Z") + ".db", At: at}
	path := filepath.Join(s.options.Backups.Folder, f.File)
	if err := s.app.Backup(ctx, path); err != nil {
		return f, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return f, err
	}
	f.Bytes = info.Size()
	list, err := s.backupFiles()
	// The clock may have been set back: this one stays, although others have later times.
	list = slices.DeleteFunc(list, func(x backupFile) bool { return x.File == f.File })
	if others := s.options.Backups.Keep - 1; err == nil && others >= 0 && len(list) > others {
		for _, old := range list[others:] {
			err = errors.Join(err, os.Remove(filepath.Join(s.options.Backups.Folder, old.File)))
		}
	}
	return f, err
}

// backupFiles lists the backups in the folder, the newest first. Other files in it are not listed.
func (s *Server) backupFiles() ([]backupFile, error) {
	out := []backupFile{}
	entries, err := os.ReadDir(s.options.Backups.Folder)
	if errors.Is(err, os.ErrNotExist) {
		return out, nil // the first backup makes it
	}
	for _, e := range entries {
		if !backupName(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it was deleted meanwhile
		}
		at, err := time.Parse("weir-20060102T150405.000Z.db", e.Name())
		if err != nil {
			continue
		}
		out = append(out, backupFile{e.Name(), info.Size(), at})
	}
	slices.SortFunc(out, func(a, b backupFile) int { return cmp.Compare(b.File, a.File) })
	return out, err
}

// backupJob is the document of scheduled backups.
type backupJob struct {
	Error string `json:"error"`
}

func listBackups(c *call, _ *struct{}) (*body[backupList], error) {
	if err := c.canBackUp(); err != nil {
		return nil, err
	}
	list, err := c.backupFiles()
	if err != nil {
		return nil, err
	}
	out := backupList{Backups: list}
	d, err := c.app.Store.Document(c, backupKind, "backup")
	if c.options.Backups.Every == 0 || errors.Is(err, store.ErrNotFound) {
		return bodyOf(out), nil
	}
	job := backupJob{}
	if err == nil {
		err = json.Unmarshal(d.Body, &job)
	}
	next := d.Due.UTC()
	out.Next, out.LastError = &next, job.Error
	return bodyOf(out), err
}

// backUpOnSchedule makes a backup if one is due.
func (s *Server) backUpOnSchedule(ctx context.Context) error {
	every := s.options.Backups.Every
	if every == 0 || s.options.Backups.Folder == "" || s.app.Backup == nil {
		return nil
	}
	d, err := s.app.Store.Document(ctx, backupKind, "backup")
	switch {
	case errors.Is(err, store.ErrNotFound):
		d = store.Document{Kind: backupKind, ID: "backup", Due: time.Now(), Body: json.RawMessage("{}")}
		_, err = s.app.Store.PutDocument(ctx, d)
	case err == nil && d.Due.After(time.Now().Add(max(every, backupClaim))): // the configuration has another time
		d.Due = time.Now().Add(every)
		_, err = s.app.Store.PutDocument(ctx, d)
	}
	if err != nil && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrChanged) {
		return err
	}
	due, err := s.app.Store.ClaimDocuments(ctx, backupKind, backupClaim, 1)
	if err != nil || len(due) == 0 {
		return err
	}
	w := s.startBackup()
	<-w.done // which a drain ends
	e := auditlog.Entry{Via: "schedule", Action: "make scheduled backup", Objects: map[string]string{"made": w.file.File}, Status: http.StatusCreated}
	job := backupJob{}
	if w.err != nil {
		p := problemOf(w.err)
		job.Error, e.Status, e.Code = p.Detail, p.Status, p.Code
	}
	ctx = context.WithoutCancel(ctx)
	body, err := json.Marshal(job)
	if err != nil {
		return err
	}
	d = due[0]
	d.Body, d.Due = body, time.Now().Add(every)
	if w.err != nil {
		d.Due = time.Now().Add(min(every, time.Hour))
	}
	if _, err = s.app.Store.PutDocument(ctx, d); err != nil {
		err = fmt.Errorf("record the backup: %w", err)
	}
	return errors.Join(w.err, err, s.audit.Record(ctx, e))
}
