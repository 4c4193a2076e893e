package tenants

import (
	"weir/internal/fault"
	"weir/internal/postgres"
)

// broken maps the constraints that a request can run into to what the caller
// is told.
var broken = map[string]*fault.Error{
	"provider_keys_name_key":              fault.New(fault.Conflict, "name_taken", "Another provider key has this name.").With(fault.Field{Pointer: "/name", Code: "name_taken", Message: "Another provider key has this name."}),
	"pools_name_key":                      fault.New(fault.Conflict, "name_taken", "Another pool has this name.").With(fault.Field{Pointer: "/name", Code: "name_taken", Message: "Another pool has this name."}),
	"model_aliases_name_key":              fault.New(fault.Conflict, "name_taken", "Another alias has this name.").With(fault.Field{Pointer: "/name", Code: "name_taken", Message: "Another alias has this name."}),
	"customers_external_key":              fault.New(fault.Conflict, "external_id_taken", "Another customer has this external_id.").With(fault.Field{Pointer: "/external_id", Code: "external_id_taken", Message: "Another customer has this external_id."}),
	"users_email_key":                     fault.New(fault.Conflict, "email_taken", "A user with this e-mail address exists."),
	"tenants_one_operator":                fault.New(fault.Conflict, "operator_exists", "This installation has its operator tenant already."),
	"api_keys_pkey":                       fault.New(fault.Conflict, "already_made", "This key was made already. Its secret was shown then, once; nobody can show it again."),
	"api_keys_tenant_id_customer_id_fkey": fault.New(fault.NotFound, "not_found", "There is no such customer."),
}

// Conflict turns a violated constraint into its fault, and leaves every other
// error alone.
func conflict(err error) error {
	if f, ok := broken[postgres.Constraint(err)]; ok {
		copied := *f
		return copied.Because(err)
	}
	return err
}
