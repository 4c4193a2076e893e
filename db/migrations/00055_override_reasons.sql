-- +goose Up
-- Why a customer has an override may name persons: erasing the customer takes it out.
grant update (reason) on overrides to weir_app;

-- +goose Down
revoke update (reason) on overrides from weir_app;
