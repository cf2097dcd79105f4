package experiment

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"
)

// Schema is the JSON schema (draft 2020-12) of an experiment file in [Strict],
// indented, with a line feed at the end.
func Schema() ([]byte, error) {
	r := jsonschema.Reflector{
		ExpandedStruct:             true,
		RequiredFromJSONSchemaTags: true,
		Anonymous:                  true,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			if t.Kind() == reflect.Pointer {
				return nil
			}
			c, ok := reflect.Zero(t).Interface().(choice)
			if !ok {
				return nil
			}
			s := &jsonschema.Schema{Type: "string"}
			for _, v := range c.values(Strict) {
				s.Enum = append(s.Enum, v)
			}
			return s
		},
	}
	s := r.Reflect(&Config{})
	s.ID = "https://github.com/tierscope/tierscope/docs/config.schema.json"
	s.Title = "tierscope experiment"
	complete(s, s, reflect.ValueOf(Default(Strict)).Elem(), false)
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return append(b, '\n'), nil
}

// complete adds to the schema s of v's type what its tags cannot say: defaults,
// what is required, and limits of list elements.
func complete(root, s *jsonschema.Schema, v reflect.Value, unused bool) {
	i := -1
	for f := range fields(v.Type()) {
		i++
		key := keyOf(f)
		p, _ := s.Properties.Get(key)
		r := ruleOf(f)
		if r.required {
			s.Required = append(s.Required, key)
		}
		if len(p.OneOf) > 0 {
			p.Description, p.OneOf[0].Description = p.OneOf[0].Description, ""
		}
		t := f.Type
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct {
			inner := v.Field(i)
			if inner.Kind() == reflect.Pointer && !inner.IsNil() {
				inner = inner.Elem()
			}
			if inner.Kind() != reflect.Struct {
				fresh := reflect.New(t)
				preset(fresh)
				inner = fresh.Elem()
			}
			complete(root, root.Definitions[t.Name()], inner, unused || r.unused)
			continue
		}
		if unused || r.unused {
			p.Description += " (no effect yet)"
		}
		if !r.required {
			p.Default = v.Field(i).Interface()
		}
		if f.Type.Kind() == reflect.Slice {
			limitItems(p, r)
		}
	}
}

// limitItems moves limits from a list to its elements.
func limitItems(p *jsonschema.Schema, r rule) {
	p.UniqueItems = r.distinct
	p.Minimum, p.Maximum = "", ""
	if r.min != nil {
		p.Items.Minimum = json.Number(fmt.Sprint(*r.min))
	}
	if r.max != nil {
		p.Items.Maximum = json.Number(fmt.Sprint(*r.max))
	}
}
