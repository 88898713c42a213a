package files

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/trajectory"
)

// FuzzReadKey: from any bytes comes a key that is one, or an error.
func FuzzReadKey(f *testing.F) {
	f.Add([]byte(`{"user":"ann","session":"s","round":1,"sub":0,"initial_pt":""}`))
	f.Add([]byte(`{"directed":true,"graph":{"user":"","session":"s","round":2,"sub":3},"nodes":[`))
	f.Add([]byte(`{"graph":{"graph":{"graph":[]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if k, err := readKey(bytes.NewReader(data)); err == nil && k.Check() != nil {
			t.Errorf("%q has the key %+v", data, k)
		}
	})
}

// FuzzParseName: a name is that of one round's file, or of none.
func FuzzParseName(f *testing.F) {
	for _, name := range []string{"Run1_Sub0.json", "Run12_Sub3.meta.json", "Run01_Sub0.json", "Run1_Sub0.meta.meta.json", "Run_Sub.json", "Run1_Sub0"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		round, sub, meta, ok := parseName(name)
		if !ok {
			return
		}
		k := trajectory.Key{Session: "s", Round: round, Sub: sub}
		path := New("", Options{}).Path(k)
		if meta {
			path = metaPath(path)
		}
		if filepath.Base(path) != name || k.Check() != nil {
			t.Errorf("%q is the file of %+v", name, k)
		}
	})
}
