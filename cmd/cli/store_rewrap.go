package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/store"
)

func (p *cli) rewrapCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rewrap",
		Short: "Wrap all data keys with the present master key",
		Long: `Wrap the data keys of all users with the master key of storage.encryption.key. Contents are not
written again. The keys that wrapped them before must be listed under storage.encryption.previous;
they can be removed from there afterwards. Backups that were made before still need them.`,
		Example: `  weir store rewrap --db postgres://weir@db.example/weir`,
		Args:    exactArgs(),
		RunE:    func(c *cobra.Command, _ []string) error { return p.rewrap(c.Context()) },
	}
}

func (p *cli) rewrap(ctx context.Context) error {
	if !store.IsURL(p.database()) {
		return usagef("only a PostgreSQL database has data keys, and %s is a file", app.Printable(p.database()))
	}
	storage, err := p.storageOf(p.database())
	if err != nil {
		return err
	}
	d, err := app.OpenDatabase(ctx, p.database(), app.DatabaseOptions{Storage: storage})
	if err != nil {
		return err
	}
	n, err := d.RewrapKeys(ctx)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "wrapped %s\n", count(n, "data key"))
	return nil
}

// storageOf returns the configured form of contents for a database. Files have none: what is configured is for the
// server that a command also works with.
func (p *cli) storageOf(database string) (config.Storage, error) {
	if !store.IsURL(database) {
		return config.Storage{}, nil
	}
	cfg, err := p.config()
	if err != nil {
		return config.Storage{}, err
	}
	return cfg.Storage, nil
}
