package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Record is one record. Payload is valid until the next call of Read.
type Record struct {
	Kind    uint32
	Seq     uint64
	Payload []byte
	// Lost is the number of records that the producer gave up on right
	// before this one.
	Lost uint64
}

// Consumer reads records. One goroutine. The producer is trusted no further
// than the mapping: a header that does not fit is an error, not a panic.
type Consumer struct {
	*ring
	at   uint64
	next uint64 // expected sequence number
	lost uint64
	held uint64 // where tail may move to at the next Read
}

// NewConsumer opens the ring of Create for reading.
func NewConsumer(f *os.File) (*Consumer, error) {
	r, err := mapFile(f)
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return &Consumer{ring: r}, nil
}

var errTorn = errors.New("ring record does not fit its area: producer is broken")

// Read returns the next record, or ok = false if there is none now. The
// payload of the record before it is given back to the producer.
func (c *Consumer) Read() (rec Record, ok bool, err error) {
	atomic.StoreUint64(c.tail(), c.held)
	for {
		head := atomic.LoadUint64(c.head())
		if c.at == head {
			return Record{}, false, nil
		}
		if head < c.at || head-c.at > c.mask+1 {
			return Record{}, false, errTorn
		}
		rest := c.mask + 1 - c.at&c.mask
		if rest < headerLen {
			c.at += rest
			continue
		}
		h := c.data[c.at&c.mask:]
		n, kind := binary.LittleEndian.Uint32(h), binary.LittleEndian.Uint32(h[4:])
		seq := binary.LittleEndian.Uint64(h[8:])
		if padded(int(n)) > rest || padded(int(n)) > head-c.at {
			return Record{}, false, errTorn
		}
		payload := h[headerLen : headerLen+int(n)]
		c.at += padded(int(n))
		switch kind {
		case kindPad:
			c.held = c.at
		case kindGap:
			if n != 8 {
				return Record{}, false, errTorn
			}
			c.lost += binary.LittleEndian.Uint64(payload)
			c.held = c.at
		default:
			if seq != c.next+c.lost {
				return Record{}, false, fmt.Errorf("ring record %d where %d is due", seq, c.next+c.lost)
			}
			c.next = seq + 1
			rec = Record{kind, seq, payload, c.lost}
			c.lost = 0
			c.held = c.at
			return rec, true, nil
		}
	}
}

// Closed reports whether the producer has closed the ring; records may still
// be unread.
func (c *Consumer) Closed() bool { return atomic.LoadUint32(c.u32(24)) == 1 }

// Producer returns the process id of the producer, 0 before it attached.
func (c *Consumer) Producer() int { return int(atomic.LoadUint32(c.u32(12))) }

// Dead reports whether the producer attached and its process is gone.
func (c *Consumer) Dead() bool {
	pid := c.Producer()
	return pid != 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// Lost is the number of records that the producer gave up on so far.
func (c *Consumer) Lost() uint64 { return atomic.LoadUint64(c.u64(192)) }

// Stalled is the time the producer spent waiting for room.
func (c *Consumer) Stalled() time.Duration { return time.Duration(atomic.LoadUint64(c.u64(200))) }

// Close unmaps the ring.
func (c *Consumer) Close() error { return unix.Munmap(c.mem) }
