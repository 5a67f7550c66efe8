package rdb

// failModule fails because of data of a module, which only that module can read.
// It tells the module's name: nine characters of six bits each, the upper 54 bits
// of a number, with the version of the module's format below.
func (d *decoder) failModule(what string) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	item := d.item
	id := d.length()
	if d.failed() {
		return
	}
	name := make([]byte, 9)
	for i := range name {
		name[i] = alphabet[id>>(64-6*(i+1))&0x3f]
	}
	d.item = item
	d.fail(what + " of the module " + string(name) + ": modules cannot be read")
}
