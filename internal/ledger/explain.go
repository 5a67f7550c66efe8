package ledger

// Explain wraps an error of the client or the server in one of this package's, for those who call scripts of their own.
// doing is the verb and the name of what it was done to.
func Explain(doing string, err error) error { return classify(doing, err) }
