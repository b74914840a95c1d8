package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// writeReady puts the addresses into a file in one step, so that whoever sees the file sees all of it.
func writeReady(path string, addresses map[string]string) error {
	text, err := json.Marshal(addresses)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	if _, err := f.Write(append(text, '\n')); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
