package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

func (p *cli) backupCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a complete copy of the database to a new file",
		Long: `Write a complete copy of the database to a new file, while other processes continue to work.

The copy can be read: "weir runs --db FILE", "weir show RUN --db FILE". Its runs continue only
after "weir store restore".`,
		Example: `  weir store backup weir-monday.db`,
		Args:    exactArgs("FILE"),
		RunE:    func(c *cobra.Command, args []string) error { return p.backup(c.Context(), args[0]) },
	}
	c.Flags().BoolVar(&p.json, "json", false, "print one JSON object")
	return c
}

// backupReport is what was backed up, as --json prints it.
type backupReport struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

func (p *cli) backup(ctx context.Context, file string) error {
	if store.IsURL(p.database()) || store.IsURL(file) {
		return usagef("a PostgreSQL database is backed up with the server's own tools, such as pg_dump")
	}
	if err := app.CheckDatabaseExists(p.database()); err != nil {
		return err
	}
	s, err := sqlite.OpenReadOnly(ctx, p.database(), sqlite.Options{})
	if err != nil {
		return err
	}
	if err := errors.Join(s.Backup(ctx, file), s.Close()); err != nil {
		return newFileError(file, err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if p.json {
		writeJSON(p.out, backupReport{file, info.Size()})
		return nil
	}
	fmt.Fprintf(p.out, "backed up to %s, %.1f MB\n", app.Printable(file), float64(info.Size())/1e6)
	return nil
}

// newFileError says what to do about a file that is there.
func newFileError(file string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return usagef("there is a file %s; choose another name, or move it away", file)
	}
	return err
}

func (p *cli) restoreCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Restore a backup to a new database",
		Long: `Restore a backup to the database that --db names, which must not exist. The backup itself does
not change.

The backup has nothing that happened after it. When unfinished runs continue, they may repeat
model calls and tool calls that were made after the backup. Their timers that are due fire, and
so do the triggers of a server. Inspect them first: "weir runs --db BACKUP". Nothing continues
before a command or a server opens the database.`,
		Example: `  weir store restore weir-monday.db --db .weir/weir.db`,
		Args:    exactArgs("BACKUP"),
		RunE:    func(c *cobra.Command, args []string) error { return p.restore(c.Context(), args[0]) },
	}
	c.Flags().BoolVar(&p.json, "json", false, "print one JSON object")
	return c
}

func (p *cli) restore(ctx context.Context, backup string) error {
	if store.IsURL(p.database()) || store.IsURL(backup) {
		return usagef("a PostgreSQL database is restored with the server's own tools, such as pg_restore")
	}
	if err := app.CheckDatabaseExists(backup); err != nil {
		return err
	}
	got, err := sqlite.Restore(ctx, backup, p.database(), sqlite.Options{})
	if err != nil {
		return newFileError(p.database(), err)
	}
	if p.json {
		writeJSON(p.out, got)
		return nil
	}
	fmt.Fprintf(p.out, "restored %s and %s to %s\n", count(got.Runs, "run"), count(got.Sessions, "session"), app.Printable(p.database()))
	if !got.Newest.IsZero() {
		p.notef("what happened after %s is not in it", got.Newest.Local().Format(time.DateTime))
	}
	if got.Unfinished > 0 {
		p.notef("%s had not ended and may repeat what came after; see `weir runs`, and cancel what must not continue", count(got.Unfinished, "run"))
	}
	return nil
}
