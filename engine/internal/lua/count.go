package lua

// ScriptCount is how many scripts are known by their SHA1.
func (vm *VM) ScriptCount() int { return len(vm.scripts) }
