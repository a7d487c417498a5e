// SQL functions that make identifiers.

#include "pg/generate.h"

#include "core/cipher.h"
#include "pg/sql.h"
#include "pg/shmem.h"

// What require_generator looks at is fixed while the server runs: once is enough for a backend.
static bool ready;

static uint64 next_id() {
    if (unlikely(!ready)) {
        require_generator();
        ready = true;
    }
    return randflake::Encrypt(shared->key_schedule, reserve_numbers(1).first);
}

SQL_FUNCTION(randflake_generate) {
    PG_RETURN_INT64(static_cast<int64>(next_id()));
}

SQL_FUNCTION(randflake_generate_text) {
    PG_RETURN_TEXT_P(text_of_id(next_id()));
}
