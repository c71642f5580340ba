command -v timeout >/dev/null 2>&1 && exec timeout @patience_s@ "$@"
exec "$@"
