package run

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// EncodeJSON encodes v as encoding/json does, indented by 2, except that
// floating-point values that JSON does not know (NaN, infinities) become null
// instead of an error, and that HTML characters are not escaped. Structures with
// a field `json:"-" extra:"true"` of type map[string]any get its entries behind
// their own, sorted; entries named like a field are left out.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := encode(&b, reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func encode(b *bytes.Buffer, v reflect.Value) error {
	if !v.IsValid() {
		b.WriteString("null")
		return nil
	}
	if v.Kind() != reflect.Interface && (v.Type().Implements(jsonMarshaler) || v.Type().Implements(textMarshaler)) {
		return encodeStd(b, v)
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return encode(b, v.Elem())
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			b.WriteString("null")
			return nil
		}
		return encodeStd(b, v)
	case reflect.Struct:
		return encodeStruct(b, v)
	case reflect.Map:
		return encodeMap(b, v)
	case reflect.Slice, reflect.Array:
		return encodeList(b, v)
	}
	return encodeStd(b, v)
}

func encodeStd(b *bytes.Buffer, v reflect.Value) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return e.Encode(v.Interface())
}

func encodeList(b *bytes.Buffer, v reflect.Value) error {
	if v.Kind() == reflect.Slice {
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return encodeStd(b, v)
		}
	}
	b.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encode(b, v.Index(i)); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

// object writes the members of a JSON object.
type object struct {
	b     *bytes.Buffer
	names map[string]bool
}

func (o *object) member(name string, v reflect.Value) error {
	if len(o.names) > 0 {
		o.b.WriteByte(',')
	}
	o.names[name] = true
	if err := encodeStd(o.b, reflect.ValueOf(name)); err != nil {
		return err
	}
	o.b.WriteByte(':')
	return encode(o.b, v)
}

func encodeMap(b *bytes.Buffer, v reflect.Value) error {
	if v.IsNil() {
		b.WriteString("null")
		return nil
	}
	b.WriteByte('{')
	o := object{b, map[string]bool{}}
	if err := o.entries(v); err != nil {
		return err
	}
	b.WriteByte('}')
	return nil
}

// entries writes the entries of a map whose names are not taken, by name.
func (o *object) entries(v reflect.Value) error {
	type entry struct {
		name  string
		value reflect.Value
	}
	var list []entry
	for it := v.MapRange(); it.Next(); {
		name, err := keyName(it.Key())
		if err != nil {
			return err
		}
		if !o.names[name] {
			list = append(list, entry{name, it.Value()})
		}
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	for _, e := range list {
		if err := o.member(e.name, e.value); err != nil {
			return err
		}
	}
	return nil
}

func keyName(k reflect.Value) (string, error) {
	switch k.Kind() {
	case reflect.String:
		return k.String(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(k.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(k.Uint(), 10), nil
	}
	return "", fmt.Errorf("JSON: map key of type %s", k.Type())
}

func encodeStruct(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	o := object{b, map[string]bool{}}
	if err := o.fields(v); err != nil {
		return err
	}
	b.WriteByte('}')
	return nil
}

func (o *object) fields(v reflect.Value) error {
	var extra reflect.Value
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Tag.Get("extra") != "":
			extra = v.Field(i)
			continue
		case name == "-" && opts == "", !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			if err := o.fields(v.Field(i)); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		if strings.Contains(opts, "omitempty") && empty(v.Field(i)) || strings.Contains(opts, "omitzero") && v.Field(i).IsZero() {
			continue
		}
		if err := o.member(name, v.Field(i)); err != nil {
			return err
		}
	}
	if extra.IsValid() {
		return o.entries(extra)
	}
	return nil
}

// empty is what omitempty means by it.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
