package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"

	"tailscale.com/tailcfg"
	"tailscale.com/util/zstdframe"
)

const maxFrame = 16 << 20

// frameWriter passes a stream of map responses on, each changed on its way.
// A frame is four bytes of length, little end first, and JSON: plain when it comes, compressed when the client requested it.
type frameWriter struct {
	http.ResponseWriter
	isCompressed bool
	change       func(*tailcfg.MapResponse) bool // reports whether to pass the message on
	pending      bytes.Buffer
}

// Write takes any part of the stream and passes on the frames that are whole.
func (f *frameWriter) Write(b []byte) (int, error) {
	f.pending.Write(b)
	for f.pending.Len() >= 4 {
		size := binary.LittleEndian.Uint32(f.pending.Bytes())
		if size > maxFrame {
			return 0, fmt.Errorf("map response of %d bytes is too long", size)
		}
		if f.pending.Len() < 4+int(size) {
			break
		}
		f.pending.Next(4)
		if err := f.pass(f.pending.Next(int(size))); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// pass changes one message and writes it as a frame, unless the change withholds it.
func (f *frameWriter) pass(message []byte) error {
	var res tailcfg.MapResponse
	if err := json.Unmarshal(message, &res); err != nil {
		return err
	}
	if res.Node != nil && !f.change(&res) { // a keep-alive has none
		return nil
	}
	out, err := json.Marshal(&res)
	if err != nil {
		return err
	}
	if f.isCompressed {
		out = zstdframe.AppendEncode(nil, out, zstdframe.FastestCompression)
	}
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(out)), uint32(len(out)))
	_, err = f.ResponseWriter.Write(append(frame, out...))
	return err
}

// Flush sends what was passed on; the vendor's server calls it after each message.
func (f *frameWriter) Flush() {
	http.NewResponseController(f.ResponseWriter).Flush()
}
