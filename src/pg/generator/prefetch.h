// Makes encrypted identifiers in batches. A backend reserves a batch with one compare-and-swap,
// encrypts it in vector registers and returns the identifiers one by one. It drops the rest of the
// batch when the clock's second changes, so an identifier contains the second of its call. The
// first batch of a second is a single number, so that a lone insert uses only one number. Each
// further batch is longer, up to 64 numbers.
//
// Each process has its own batch. The postmaster never fills its batch, so its children inherit an
// empty batch. With several secrets, a process skips some numbers of a batch
// (core/secret/secret_ring.h).
//
// If the session sorts loads, a statement that uses many identifiers gets them from a long run
// (pg/identifier/load.h), which the array here takes over in parts of up to 64.
//
// A family is a type with these functions:
//   Require()         raises an ERROR unless this server can generate; called once per process
//   Reserve(wanted)   returns a Reservation or raises an ERROR
//   ReserveLongRun(visited, wanted)   see reserve_long_run
//   ReadRing()        returns the ring of secrets; see UseReserved

#pragma once

#include "pg/base/pg.h"

#include "core/generator/generator.h"
#include "core/secret/secret_ring.h"
#include "pg/base/clock.h"
#include "pg/generator/reserve.h"
#include "pg/identifier/load.h"
#include "pg/identifier/vector_path.h"

// The factor by which the length of a batch grows within a second, up to kBatchLength.
static constexpr uint32 kBatchGrowth = 8;

template <typename Family> class Prefetch {
public:
    static inline uint64 Next() {
        if (likely(next < count && second == wall_clock_second())) return ids[next++];
        return NextBatch();
    }

private:
    static pg_noinline uint64 NextBatch() {
        if (unlikely(!ready)) {
            Assert(IsUnderPostmaster || !IsPostmasterEnvironment);
            Family::Require();
            ready = true;
        }
        if (unlikely(load.depth > 0)) return NextOfLoad();
        return NextOfBatch();
    }

    [[gnu::always_inline]] static inline uint64 NextOfBatch() {
        const bool same_second = second == wall_clock_second();
        const uint32 wanted =
            same_second ? Min(reserved * kBatchGrowth, static_cast<uint32>(randflake::kBatchLength))
                        : 1;
        next = count = 0;
        do {
            randflake::UseReserved(
                [&] { return Family::Reserve(wanted); }, Family::ReadRing,
                [](const randflake::Reservation& reservation, const auto& ring) {
                    Assert(reservation.count >= 1 && reservation.count <= lengthof(ids));
                    const auto numbers = static_cast<int>(reservation.count);
                    const uint64 skipped = randflake::EncryptNumbers(
                        ring, vector_path, reservation.first, numbers, ids);
                    second = {reservation.now.count};  // ticks are seconds
                    reserved = reservation.count;
                    count = static_cast<uint32>(randflake::DropSkipped(skipped, numbers, ids));
                });
        } while (unlikely(count == 0));
        return ids[next++];
    }

    static pg_noinline uint64 NextOfLoad() {
        const randflake::Second now = wall_clock_second();
        if (load.empty == Empty && !load_run_lasts(now)) load_drop_run();
        if (load.empty == Empty && TakePart(now)) return ids[next++];
        if (load_may_run(Empty)) {
            Empty();
            FillRun();
            if (TakePart(now)) return ids[next++];
            load_drop_run();
        }
        const uint64 id = NextOfBatch();
        load.used += count;
        return id;
    }

    // Makes sure that the array has an identifier of the run. Returns false if the run is used up.
    static bool TakePart(randflake::Second now) {
        if (next == count) {
            next = 0;
            count = Min(load.count - load.next, static_cast<uint32>(randflake::kBatchLength));
            memcpy(ids, load.ids + load.next, count * sizeof *ids);
            load.next += count;
        }
        second = now;
        reserved = randflake::kBatchLength;  // a batch that follows in this second has full length
        return count > 0;
    }

    // Without a number left for long runs, waits for the next second once.
    static void FillRun() {
        const uint32 wanted = load_begin_run(Empty);
        uint32 made = 0, visited = 0;
        bool waited = false;
        while (made < wanted) {
            CHECK_FOR_INTERRUPTS();
            const auto reservation = MakePart(&visited, wanted, &made);
            if (reservation.outcome == randflake::Outcome::kReserved) continue;
            if (made > 0 || waited || reservation.outcome != randflake::Outcome::kExhausted) break;
            wait_for_second_after({reservation.now.count});
            visited = 0;
            waited = true;
        }
        load_sort(made);
    }

    // Encrypts one reservation of the run, under a ring that is read after it.
    static randflake::Reservation MakePart(uint32* visited, uint32 wanted, uint32* made) {
        return randflake::UseReserved(
            [&] { return Family::ReserveLongRun(visited, wanted - *made); }, Family::ReadRing,
            [&](const randflake::Reservation& reservation, const auto& ring) {
                for (uint32 done = 0; done < reservation.count; done += randflake::kBatchLength) {
                    const int numbers = static_cast<int>(Min(
                        reservation.count - done, static_cast<uint32>(randflake::kBatchLength)));
                    uint64* const to = load.ids + *made;
                    const uint64 skipped = randflake::EncryptNumbers(
                        ring, vector_path, reservation.first + done, numbers, to);
                    *made += static_cast<uint32>(randflake::DropSkipped(skipped, numbers, to));
                }
                return reservation;
            });
    }

    static void Empty() { next = count = 0; }

    static inline bool ready;

    static inline randflake::Second second;  // the clock's second at the reservation
    static inline uint32 reserved;           // length of the batch, including skipped numbers
    static inline uint32 next;               // ids[next .. count - 1] were not returned yet
    static inline uint32 count;
    static inline uint64 ids[randflake::kBatchLength];
};

// Returns the whole set in a tuple store. The store copies each row, so the loop reuses one row.
template <typename Family> static void generate_materialized(FunctionCallInfo fcinfo, int32 count) {
    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    const auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    Assert(result->setDesc->natts == 1);
    Assert(TupleDescAttr(result->setDesc, 0)->atttypid == INT8OID);
    Datum value = Int64GetDatum(0);
    bool null = false;
    HeapTuple row = heap_form_tuple(result->setDesc, &value, &null);
    auto* column =
        reinterpret_cast<uint64*>(reinterpret_cast<char*>(row->t_data) + row->t_data->t_hoff);
    for (int32 i = 0; i < count; i++) {
        if (i % randflake::kBatchLength == 0) CHECK_FOR_INTERRUPTS();
        *column = Prefetch<Family>::Next();
        tuplestore_puttuple(result->setResult, row);
    }
}

// In FROM the executor stores all rows anyway, so filling the tuple store here saves a call per
// row. In a select list the executor stores no rows, so each call returns one row.
template <typename Family> static Datum generate_many(FunctionCallInfo fcinfo) {
    const auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    const bool first_call = fcinfo->flinfo->fn_extra == nullptr;
    const int32 count = PG_GETARG_INT32(0);

    if (first_call && count < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("number of identifiers must not be negative")));
    if (first_call && result != nullptr && IsA(result, ReturnSetInfo) &&
        (result->allowedModes & SFRM_Materialize_Preferred) != 0) {
        generate_materialized<Family>(fcinfo, count);
        return Datum{0};
    }

    if (SRF_IS_FIRSTCALL()) SRF_FIRSTCALL_INIT()->max_calls = static_cast<uint64>(count);
    FuncCallContext* context = SRF_PERCALL_SETUP();
    if (context->call_cntr >= context->max_calls) SRF_RETURN_DONE(context);
    SRF_RETURN_NEXT(context, Int64GetDatum(static_cast<int64>(Prefetch<Family>::Next())));
}
