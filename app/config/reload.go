package config

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// ReplaceSecrets has Secret resolve the names that another configuration of the process has, and no others. It may be called
// concurrently with Secret. c was made by Load.
func (c *Config) ReplaceSecrets(next *Config) {
	secrets := maps.Clone(next.Secrets)
	c.replaced.Store(&secrets)
}

// Changes lists what differs between two configurations, in order: what can change while a process runs, and what needs a new one.
type Changes struct {
	// Live are secrets, and how providers are reached: their key, address, API, organization, project and summary.
	Live []string
	// Fixed is everything else.
	Fixed []string
}

// Compare lists what differs in a later configuration. Paths are those of the file: "providers.openai.key". They never have values.
func Compare(before, after *Config) Changes {
	var c Changes
	a, b := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for i := range a.NumField() {
		switch name := nameOfField(a.Type().Field(i)); {
		case name == "-" || name == "" || sameValue(a.Field(i), b.Field(i)):
		case name == "secrets":
			c.Live = append(c.Live, changedKeys(name, before.Secrets, after.Secrets)...)
		case name == "providers":
			c.compareProviders(before.Providers, after.Providers)
		default:
			c.Fixed = append(c.Fixed, name)
		}
	}
	slices.Sort(c.Live)
	slices.Sort(c.Fixed)
	return c
}

func changedKeys[V any](name string, before, after map[string]V) (out []string) {
	all := maps.Clone(before)
	if all == nil {
		all = make(map[string]V)
	}
	maps.Copy(all, after)
	for key := range all { // order: the caller sorts
		v, was := before[key]
		w, is := after[key]
		if was != is || !sameValue(reflect.ValueOf(v), reflect.ValueOf(w)) {
			out = append(out, name+"."+key)
		}
	}
	return out
}

func (c *Changes) compareProviders(before, after map[string]Provider) {
	for _, path := range changedKeys("providers", before, after) {
		name := strings.TrimPrefix(path, "providers.")
		a, was := before[name]
		b, is := after[name]
		if !was || !is {
			c.Fixed = append(c.Fixed, path)
			continue
		}
		x, y := reflect.ValueOf(a), reflect.ValueOf(b)
		for i := range x.NumField() {
			if sameValue(x.Field(i), y.Field(i)) {
				continue
			}
			switch field := nameOfField(x.Type().Field(i)); field {
			case "key", "baseURL", "api", "organization", "project", "summary":
				c.Live = append(c.Live, path+"."+field)
			default:
				c.Fixed = append(c.Fixed, path+"."+field)
			}
		}
	}
}

// CheckKeys returns an error that names each secret, and each key of a provider, that cannot be read although it could be under the
// configuration before.
func (c *Config) CheckKeys(before *Config) error {
	var all error
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		if _, err := c.Secrets[name].Value(); err != nil {
			all = errors.Join(all, &keyError{"secrets." + name, err})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		_, err := c.Providers[name].Key.Value()
		if _, was := before.Providers[name].Key.Value(); err != nil && was == nil {
			all = errors.Join(all, &keyError{"providers." + name + ".key", err})
		}
	}
	return all
}

type keyError struct {
	path string
	err  error
}

// Error implements error. It shows no value.
func (e *keyError) Error() string { return e.path + ": " + e.err.Error() }

// Unwrap returns why the key cannot be read.
func (e *keyError) Unwrap() error { return e.err }

// nameOfField returns the name of a field in files; "" for one that files do not have.
func nameOfField(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// sameValue compares values as reflect.DeepEqual does, but takes all functions for equal: they look up the environment, which does not
// change while a process runs.
func sameValue(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	if !a.IsValid() {
		return true
	}
	switch a.Kind() {
	case reflect.Func:
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !sameValue(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		return slices.EqualFunc(elements(a), elements(b), sameValue)
	case reflect.Map:
		return sameMap(a, b)
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return sameValue(a.Elem(), b.Elem())
	default:
		return a.Equal(b)
	}
}

func elements(list reflect.Value) []reflect.Value {
	out := make([]reflect.Value, list.Len())
	for i := range out {
		out[i] = list.Index(i)
	}
	return out
}

func sameMap(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for keys := a.MapRange(); keys.Next(); {
		if !sameValue(keys.Value(), b.MapIndex(keys.Key())) {
			return false
		}
	}
	return true
}
