package httptool_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/weir-run/weir/tool"
	httptool "github.com/weir-run/weir/tool/http"
)

func ExampleNew() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s", r.URL.Path, r.Header.Get("Authorization"))
	}))
	defer api.Close()

	order, err := httptool.New(httptool.Spec{
		Name:        "order_status",
		Description: "Tells where an order is.",
		Parameters: map[string]any{
			"properties": map[string]any{"id": map[string]any{"type": "string", "description": "The order's number."}},
			"required":   []any{"id"},
		},
		URL:     api.URL + "/orders/{{ args.id }}",
		Headers: map[string]string{"Authorization": "Bearer {{ secrets.SHOP }}"},
	}, httptool.Options{
		HTTP:    api.Client(), // a program uses one that refuses inside addresses
		Secrets: func(name string) (string, bool) { return "shop-key", name == "SHOP" },
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(order.Run(context.Background(), tool.Call{Arguments: `{"id": "A/17"}`}))
	// Output:
	// /orders/A/17 for Bearer [secret SHOP] <nil>
}
