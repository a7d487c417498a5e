// Looks for coordinators in this server's databases that have leased its static node ids.
// core/lease/pool_look.h explains when and why the server looks for them.

#pragma once

#include "pg/base/pg.h"

#include "core/base/time.h"
#include "pg/base/error_text.h"

// Returns the identity of this data directory, timeline and database as text; palloc'd.
char* coordinator_identity();

// Registers the launcher of the search for coordinators, if the server has static node ids.
void look_register_worker();

// Returns the error while no look has ended.
ErrorText not_looked_error();

// Returns the error while a coordinator may have leased this range of node ids to another server.
ErrorText leased_error(uint32 range, randflake::Second until);
