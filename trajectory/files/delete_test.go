package files_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/files"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

// below lists the files and folders below one.
func below(t *testing.T, root string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if rel, bad := filepath.Rel(root, path); bad == nil && rel != "." {
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

// write creates a file for a test.
func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func save(t *testing.T, s *files.Storage, keys ...trajectory.Key) {
	t.Helper()
	for _, k := range keys {
		if err := s.Save(t.Context(), trajectorytest.Sample(t, k, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func of(user string) trajectory.Filter { return trajectory.Filter{User: &user} }

func TestFoldersThatAreEmptyAreDeletedAndOthersStay(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := files.New(root, files.Options{})
	save(t, s, trajectory.Key{User: "ann", Session: "s1", Round: 1}, trajectory.Key{User: "ann", Session: "s2", Round: 1},
		trajectory.Key{User: "ann", Session: "s2", Round: 2}, trajectory.Key{User: "bob", Session: "s1", Round: 1})
	session, round := "s2", 2
	for _, step := range []struct {
		f    trajectory.Filter
		n    int
		left string
	}{
		{trajectory.Filter{Session: &session, Round: &round}, 1, "ann ann/s1 ann/s1/Run1_Sub0.json ann/s1/Run1_Sub0.meta.json ann/s2 ann/s2/Run1_Sub0.json ann/s2/Run1_Sub0.meta.json bob bob/s1 bob/s1/Run1_Sub0.json bob/s1/Run1_Sub0.meta.json"},
		{trajectory.Filter{Session: &session}, 1, "ann ann/s1 ann/s1/Run1_Sub0.json ann/s1/Run1_Sub0.meta.json bob bob/s1 bob/s1/Run1_Sub0.json bob/s1/Run1_Sub0.meta.json"},
		{of("ann"), 1, "bob bob/s1 bob/s1/Run1_Sub0.json bob/s1/Run1_Sub0.meta.json"},
		{trajectory.Filter{}, 1, ""},
	} {
		n, err := s.Delete(t.Context(), step.f)
		if got := strings.Join(below(t, root), " "); err != nil || n != step.n || got != step.left {
			t.Errorf("deleted %d rounds, %v, and there are %s, want %d and %s", n, err, got, step.n, step.left)
		}
	}
	if _, err := os.Stat(root); err != nil {
		t.Errorf("the folder of the storage is gone: %v", err)
	}
}

func TestFilesThatAreNoTrajectoriesAreNotDeleted(t *testing.T) {
	t.Parallel()
	s, graph, meta := saved(t)
	dir := filepath.Dir(graph)
	theirs := []string{"notes.txt", "Run2_Sub3.json.bak", "Run02_Sub3.json", "run2_sub3.json", "Run2_Sub3.svg", "Run-1_Sub0.json", "Run1.json", ".hidden"}
	for _, name := range theirs {
		write(t, filepath.Join(dir, name), []byte("theirs"))
	}
	write(t, filepath.Join(dir, "..", "readme"), []byte("theirs"))
	write(t, filepath.Join(dir, "deeper", "Run1_Sub0.json"), []byte("theirs"))
	// Copies of another's round, which say whose they are.
	write(t, filepath.Join(dir, "Run7_Sub3.json"), read(t, graph))
	write(t, filepath.Join(dir, "Run7_Sub3.meta.json"), read(t, meta))
	if err := os.Mkdir(filepath.Join(dir, "Run9_Sub0.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	n, err := s.Delete(t.Context(), trajectory.Filter{})
	if err != nil || n != 1 {
		t.Errorf("deleted %d rounds, %v", n, err)
	}
	want := append(theirs, "..", "../readme", "deeper", "deeper/Run1_Sub0.json", "Run7_Sub3.json", "Run7_Sub3.meta.json", "Run9_Sub0.json")
	for i := range want {
		want[i] = filepath.ToSlash(filepath.Join("ann/s1", want[i]))
	}
	want = append(want, "ann/s1")
	slices.Sort(want)
	if got := below(t, filepath.Join(dir, "..", "..")); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// cutOff returns a storage with two rounds that were never saved whole and three files
// that were being written, of one of which keep bytes were.
func cutOff(t *testing.T, keep int) (s *files.Storage, root, dir string) {
	t.Helper()
	s, graph, meta := saved(t)
	save(t, s, trajectory.Key{User: "ann", Session: "s1", Round: 4})
	dir = filepath.Dir(graph)
	data := read(t, graph)
	write(t, filepath.Join(dir, ".writing-1"), data[:min(keep, len(data))])
	write(t, filepath.Join(dir, ".writing-2"), read(t, meta))
	write(t, filepath.Join(dir, ".writing-3"), read(t, filepath.Join(dir, "Run4_Sub0.json")))
	if err := errors.Join(os.Remove(meta), os.Remove(filepath.Join(dir, "Run4_Sub0.meta.json"))); err != nil {
		t.Fatal(err)
	}
	return s, filepath.Dir(filepath.Dir(dir)), dir
}

func TestDeleteRemovesLeftoversOfInterruptedSaves(t *testing.T) {
	t.Parallel()
	other, round := "another", 2
	for _, x := range []struct {
		keep int
		left []string // when round 2 is gone
	}{
		{1 << 20, []string{".writing-3", "Run4_Sub0.json"}},
		{700, []string{".writing-3", "Run4_Sub0.json"}},
		{0, []string{".writing-1", ".writing-3", "Run4_Sub0.json"}}, // which does not say whose it was to be
	} {
		s, root, dir := cutOff(t, x.keep)
		for _, step := range []struct {
			f    trajectory.Filter
			in   string
			left []string
		}{
			{trajectory.Filter{Session: &other}, dir, []string{".writing-1", ".writing-2", ".writing-3", "Run2_Sub3.json", "Run4_Sub0.json"}},
			{trajectory.Filter{Round: &round}, dir, x.left},
			{of("ann"), root, nil},
		} {
			n, err := s.Delete(t.Context(), step.f)
			if got := below(t, step.in); n != 0 || err != nil || !slices.Equal(got, step.left) {
				t.Errorf("deleted %d rounds, %v, and there are %v, want %v", n, err, got, step.left)
			}
		}
	}
}

func TestDamagedFilesAreDeleted(t *testing.T) {
	t.Parallel()
	s, graph, meta := saved(t)
	write(t, graph, []byte("{"))
	write(t, meta, bytes.ReplaceAll(read(t, meta), []byte(`"user"`), []byte(`"nobody"`)))
	if n, err := s.Delete(t.Context(), of("ann")); err != nil || n != 1 || len(below(t, filepath.Dir(graph))) != 0 {
		t.Errorf("deleted %d, %v", n, err)
	}
}

func TestLinksAreNotFollowedByADeletion(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	s, away := files.New(root, files.Options{}), files.New(outside, files.Options{})
	k := trajectory.Key{User: "ann", Session: "s1", Round: 1}
	bob := trajectory.Key{User: "bob", Session: "s1", Round: 1}
	save(t, away, k)
	save(t, s, bob)
	link := func(to string, at ...string) {
		t.Helper()
		path := filepath.Join(append([]string{root}, at...)...)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(to, path)); err != nil {
			t.Skip("needs links: ", err)
		}
	}
	link(filepath.Join(outside, "ann"), "ann")                                // a user's folder, out
	link(filepath.Join(outside, "ann", "s1"), "carl", "s1")                   // a session's, out
	link(filepath.Join(root, "bob", "s1"), "carl", "s2")                      // a session's, to another's
	link(filepath.Join(root, "bob"), "dora")                                  // a user's, to another's
	link(away.Path(k), "emil", "s1", "Run1_Sub0.json")                        // a file's, out
	link(s.Path(bob), "emil", "s1", "Run2_Sub0.json")                         // a file's, to another's
	link(filepath.Join(outside, "ann"), "emil", "s1", ".writing-1")           // what is being written
	link(filepath.Join(outside, "nothing"), "emil", "s1", "Run3_Sub0.json")   // to nowhere
	link(filepath.Join(outside, "ann", "s1"), "emil", "s1", "Run4_Sub0.json") // to a folder
	before, theirs := below(t, outside), below(t, filepath.Join(root, "bob"))
	for _, user := range []string{"ann", "carl", "dora", "emil"} {
		n, err := s.Delete(t.Context(), of(user))
		if n != 0 {
			t.Errorf("of %s %d rounds were deleted", user, n)
		}
		if failed := err != nil; failed != (user == "ann" || user == "dora") {
			t.Errorf("the folder of %s: got %v", user, err)
		}
	}
	session := "s2"
	if _, err := s.Delete(t.Context(), trajectory.Filter{Session: &session}); err == nil || !strings.Contains(err.Error(), "carl/s2") {
		t.Errorf("the link to a session: got %v", err)
	}
	if got := below(t, outside); !slices.Equal(got, before) {
		t.Errorf("outside there are %v, want %v", got, before)
	}
	if got := below(t, filepath.Join(root, "bob")); !slices.Equal(got, theirs) {
		t.Errorf("of bob there are %v, want %v", got, theirs)
	}
	if n, err := s.Delete(t.Context(), trajectory.Filter{}); n != 1 || err != nil {
		t.Errorf("of all %d rounds were deleted, %v", n, err)
	}
	if got := below(t, outside); !slices.Equal(got, before) {
		t.Errorf("outside there are %v, want %v", got, before)
	}
}

func TestDeleteReportsFailuresAndDeletesTheRest(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("nothing is forbidden to this user")
	}
	root := t.TempDir()
	s := files.New(root, files.Options{})
	save(t, s, trajectory.Key{User: "ann", Session: "s1", Round: 1}, trajectory.Key{User: "ann", Session: "s2", Round: 1})
	locked := filepath.Join(root, "ann", "s1")
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(locked, 0o700) })
	n, err := s.Delete(t.Context(), of("ann"))
	if n != 1 || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "s1") {
		t.Errorf("deleted %d rounds, %v", n, err)
	}
}

func TestSavesAndDeletionsAtTheSameTimeFailNoSave(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := files.New(root, files.Options{NoSync: true})
	var wg sync.WaitGroup
	for i := range 8 {
		k := trajectory.Key{User: "ann", Session: string(rune('a' + i)), Round: 1}
		r := trajectorytest.Sample(t, k, 0)
		wg.Go(func() {
			for range 20 {
				if err := s.Save(t.Context(), r); err != nil {
					t.Errorf("save: %v", err)
				}
				if _, err := s.Delete(t.Context(), trajectory.Filter{User: &k.User, Session: &k.Session}); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if left := below(t, root); len(left) > 0 {
		t.Errorf("there are %v", left)
	}
}

func TestCopiedFoldersAndDamagedFilesDoNotDisturbListings(t *testing.T) {
	t.Parallel()
	s, graph, meta := saved(t)
	save(t, s, trajectory.Key{User: "ann", Session: "s1", Round: 1})
	root := filepath.Dir(filepath.Dir(filepath.Dir(graph)))
	if err := os.CopyFS(filepath.Join(root, "ann", "s1-copy"), os.DirFS(filepath.Dir(graph))); err != nil {
		t.Fatal(err)
	}
	one, two := filepath.Join(filepath.Dir(graph), "Run1_Sub0.meta.json"), meta
	listed := func(rounds ...int) {
		t.Helper()
		keys, err := s.List(t.Context(), trajectory.Filter{})
		var got []int
		for _, k := range keys {
			got = append(got, k.Round)
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, rounds) {
			t.Errorf("listed are %v, %v, want rounds %v", keys, err, rounds)
		}
	}
	for _, bad := range []string{one, two} {
		data := read(t, bad)
		write(t, bad, []byte("{"))
		listed(1, 2)
		write(t, bad, data)
	}
	for left, n := range []int{2, 1} {
		round := 1 + left
		if n, err := s.Delete(t.Context(), trajectory.Filter{Round: &round}); n != 1 || err != nil {
			t.Errorf("deleted %d rounds, %v", n, err)
		}
		listed([]int{2}[:n-1]...)
	}
	if got := below(t, filepath.Join(root, "ann", "s1-copy")); len(got) != 4 {
		t.Errorf("of the copy there are %v", got)
	}
}
