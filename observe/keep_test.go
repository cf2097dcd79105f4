package observe

import (
	"reflect"
	"testing"
)

// Every column of a batch must shrink with it: each is filled by reflection, so
// that one that is added later cannot be forgotten.
func TestKeepReachesEveryColumn(t *testing.T) {
	b := Batch{Len: 5}
	v := reflect.ValueOf(&b).Elem()
	columns := 0
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Struct {
			continue
		}
		columns++
		if c := f.FieldByName("Column"); c.IsValid() {
			f.FieldByName("Dict").Set(reflect.ValueOf(NewDict("a", "b", "c", "d", "e", "f")))
			f = c
		}
		values := reflect.MakeSlice(f.FieldByName("Values").Type(), 5, 5)
		for j := range 5 {
			e := values.Index(j)
			if e.CanInt() {
				e.SetInt(int64(j + 1))
			} else {
				e.SetUint(uint64(j + 1))
			}
		}
		f.FieldByName("Form").SetUint(uint64(Slice))
		f.FieldByName("Values").Set(values)
		f.FieldByName("Nulls").Set(reflect.ValueOf([]bool{false, true, false, false, true}))
	}
	if columns != 36 {
		t.Fatalf("%d columns seen, want 36", columns)
	}
	k := b.Keep([]int32{3, 1})
	if k.Len != 2 {
		t.Fatalf("length %d, want 2", k.Len)
	}
	v = reflect.ValueOf(k)
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Struct {
			continue
		}
		if c := f.FieldByName("Column"); c.IsValid() {
			f = c
		}
		values, name := f.FieldByName("Values"), reflect.TypeOf(k).Field(i).Name
		if values.Len() != 2 {
			t.Fatalf("%s has %d values, want 2", name, values.Len())
		}
		for j, want := range []int64{4, 2} {
			got := values.Index(j)
			if got.CanInt() && got.Int() != want || !got.CanInt() && got.Uint() != uint64(want) {
				t.Errorf("%s row %d is %v, want %d", name, j, got, want)
			}
		}
		if n := f.FieldByName("Nulls").Interface().([]bool); n[0] || !n[1] {
			t.Errorf("%s nulls are %v, want [false true]", name, n)
		}
	}
}

func TestKeepOfConstAndRun(t *testing.T) {
	b := Batch{Len: 4, Time: RunOf[uint64](10, 5), CPU: ConstOf[uint16](3)}
	k := b.Keep([]int32{0, 2, 3})
	if got := k.Time.Slice(nil, 3); !reflect.DeepEqual(got, []uint64{10, 20, 25}) {
		t.Errorf("times %v", got)
	}
	if k.CPU.At(2) != 3 || !k.PID.Null(1) {
		t.Errorf("constant %d, absent null %v", k.CPU.At(2), k.PID.Null(1))
	}
}
