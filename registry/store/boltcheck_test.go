package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

func TestFreePagesAreSound(t *testing.T) {
	dir := t.TempDir()
	for name, o := range map[string]*bolt.Options{"with": {}, "without": {NoFreelistSync: true}} {
		path := filepath.Join(dir, name)
		db, err := bolt.Open(path, 0o600, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 { // emptied again, so that pages are free
			err = errors.Join(err, db.Update(func(tx *bolt.Tx) error {
				b, err := tx.CreateBucketIfNotExists([]byte("b"))
				for n := range 2000 {
					err = errors.Join(err, b.Put([]byte(uuidOf(n)), []byte(strings.Repeat("x", i*50))))
				}
				nested, made := b.CreateBucketIfNotExists([]byte("nested"))
				return errors.Join(err, made, nested.Put([]byte("k"), []byte("v")))
			}))
			err = errors.Join(err, db.Update(func(tx *bolt.Tx) error {
				for n := range 1500 {
					err = errors.Join(err, tx.Bucket([]byte("b")).Delete([]byte(uuidOf(n))))
				}
				return err
			}))
			raw, read := os.ReadFile(path)
			if err := errors.Join(err, read, checkBolt(bytes.NewReader(raw), int64(len(raw)))); err != nil {
				t.Errorf("%s a list of free pages: %v", name, err)
			}
		}
		_ = db.Close()
	}
}

// Whatever is put and deleted, bbolt writes what the check takes for sound.
func TestWhatBboltWritesIsSound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true, NoSync: true, PageSize: 1024})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	random := rand.New(rand.NewPCG(3, 3))
	for i := range 150 {
		deletes := random.IntN(10)
		err := db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte{byte('a' + random.IntN(3))})
			for range random.IntN(200) {
				k := []byte(uuidOf(random.IntN(1000)))[random.IntN(36):]
				if random.IntN(10) < deletes {
					err = errors.Join(err, b.Delete(k))
				} else {
					err = errors.Join(err, b.Put(k, make([]byte, random.IntN(3000))))
				}
			}
			return err
		})
		raw, read := os.ReadFile(path)
		if err := errors.Join(err, read, checkBolt(bytes.NewReader(raw), int64(len(raw)))); err != nil {
			t.Fatalf("after transaction %d: %v", i, err)
		}
	}
}

func FuzzCheckBolt(f *testing.F) {
	path := filepath.Join(f.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 1024, NoFreelistSync: true})
	if err != nil {
		f.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("b"))
		for i := range 50 {
			err = errors.Join(err, b.Put([]byte(uuidOf(i)), []byte("value")))
		}
		return err
	})
	raw, read := os.ReadFile(path)
	if err := errors.Join(err, read, db.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte{})
	f.Fuzz(func(t *testing.T, at uint32, patch []byte) {
		b := bytes.Clone(raw)
		copy(b[int(at)%len(b):], patch)
		_ = checkBolt(bytes.NewReader(b), int64(len(b))) // it returns
	})
}
