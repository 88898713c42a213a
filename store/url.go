package store

import "strings"

// IsURL reports whether the name of a database is the URL of a PostgreSQL database.
func IsURL(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// RedactURL returns the name of a database for messages: a URL without its password.
func RedactURL(url string) string {
	if !IsURL(url) {
		return url
	}
	scheme, rest, _ := strings.Cut(url, "://")
	place, query, _ := strings.Cut(rest, "?")
	host := place[strings.LastIndexByte(place, '@')+1:]
	if login, _, found := strings.Cut(place, "@"); found {
		user, _, _ := strings.Cut(login, ":")
		host = user + "@" + host
	}
	if strings.Contains(strings.ToLower(query), "password") {
		query = "..."
	}
	if query != "" {
		query = "?" + query
	}
	return scheme + "://" + host + query
}
