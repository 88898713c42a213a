package sqlite

// WithDriver returns options under which a store uses another driver of database/sql.
func WithDriver(o Options, name string) Options {
	o.driver = name
	return o
}
