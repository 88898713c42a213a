package convo

// Manager is the one way a context is changed.
type Manager struct{}
