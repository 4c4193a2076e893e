package tenants

import "github.com/google/uuid"

// User is a person; the same person in every tenant.
type User struct {
	ID    uuid.UUID
	Email string
	Name  string
}
