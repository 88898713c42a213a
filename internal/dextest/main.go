// Command dextest runs dex, an OpenID Connect issuer, for a test of the server: with one client, one person in the group authors whom nobody
// asks for a password, and one person with a password. It listens on a free port of this machine and prints its address. It ends when its
// input does.
//
// It is a module of its own: what dex needs must not be needed by Weir.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
	"github.com/prometheus/client_golang/prometheus"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: dextest CLIENT SECRET REDIRECT")
		os.Exit(2)
	}
	if err := serve(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "dextest:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, client, secret, redirect string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	kept := memory.New(log)
	err := errors.Join(
		kept.CreateClient(ctx, storage.Client{ID: client, Secret: secret, RedirectURIs: []string{redirect}, Name: "Weir"}),
		kept.CreateConnector(ctx, storage.Connector{ID: "mock", Type: "mockCallback", Name: "Mock", ResourceVersion: "1"}),
	)
	if err != nil {
		return err
	}
	keys := signer.LocalConfig{KeysRotationPeriod: "1h"}
	sign, err := keys.Open(ctx, kept, time.Hour, time.Now, log)
	if err != nil {
		return err
	}
	sign.Start(ctx)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	issuer := "http://" + l.Addr().String() + "/dex"
	s, err := server.NewServer(ctx, server.Config{
		Issuer: issuer, Storage: kept, SkipApprovalScreen: true, Logger: log, Signer: sign, PrometheusRegistry: prometheus.NewRegistry(),
		Web: server.WebConfig{WebFS: web.FS()}, AllowedGrantTypes: []string{"authorization_code"}, IDTokensValidFor: time.Hour,
	})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(issuer)
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	return h.Serve(l)
}
