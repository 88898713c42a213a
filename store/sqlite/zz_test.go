package sqlite
import "testing"
import ("os"; "time"; "github.com/weir-run/weir/store")
func TestZZ(t *testing.T){
	if os.Getenv("ZZ")=="" {t.Skip()}
	s := openAt(t, os.Getenv("ZZ"), Options{})
	if err := s.Create(t.Context(), newRunZZ()); err != nil { t.Fatal(err) }
	talk := newTalk(t, s)
	for range 300 { talk.say(t, talk.words(320), talk.words(480)) }
}
func newRunZZ() store.NewRun { return store.NewRun{ID: "seed", At: time.UnixMilli(1)} }
