package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// writeReady puts the addresses into a file.
func writeReady(path string, addresses map[string]string) error {
	text, err := json.Marshal(addresses)
	if err != nil {
		return err
	}
	return writeAtOnce(path, append(text, '\n'))
}

// writeAtOnce replaces a file in one step, so that whoever sees it sees all of it.
func writeAtOnce(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	if _, err := f.Write(text); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
