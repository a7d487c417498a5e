// Planner estimates for <, <=, > and >= of the type randflake.
//
// Every user sees estimates, in EXPLAIN, and can make a column with statistics of his own.
// Node id and sequence number inside a value must not follow from them. So an estimate is one of
// the values' seconds: the constant, the most common values, the bounds of the histogram and the
// ends of an index, which the server puts in place of the outer bounds, all count as their seconds.
// It may be off by a second.
//
// The server's estimators interpolate between two values only for built-in types, and then between
// the numbers. For others they only compare. Equality, joins and extended statistics are left to
// those: they tell the order within a second, as the operators do. But the planner combines two
// bounds to a range only if the operators name the server's estimators. So here a lower bound looks
// for an upper bound on the same column and answers for the range of both: P(lower <= x < upper) /
// P(x < upper). The planner multiplies that by P(x < upper).

#include "pg/base/sql_function.h"
#include "pg/type/type.h"

namespace {
struct Comparison {
    PlannerInfo* root;
    Oid operator_oid;
    Node* left;
    Node* right;
    int strategy;  // of the B-tree operator family; 0 when it is none of its
};

enum class Bound : uint8 { kNone, kLower, kUpper };

// A search for the constant of a comparison among values of a column. "Before" are the values of
// seconds before `boundary`: those that fulfil x < c or x <= c, or do not fulfil x >= c or x > c.
struct Search {
    randflake::Second boundary;
    bool wants_before;
    randflake::Second last_before;   // of the last value seen that was before
    randflake::Second first_beyond;  // and of the last one that was not
};
}  // namespace

static Comparison comparison(PlannerInfo* root, Oid operator_oid, Node* left, Node* right) {
    Comparison result{root, operator_oid, left, right, 0};
    const TypeCacheEntry* type = lookup_type_cache(exprType(left), TYPECACHE_BTREE_OPFAMILY);
    result.strategy = get_op_opfamily_strategy(operator_oid, type->btree_opf);
    return result;
}

static bool is_less(const Comparison& c) {
    return c.strategy == BTLessStrategyNumber || c.strategy == BTLessEqualStrategyNumber;
}

static bool is_greater(const Comparison& c) {
    return c.strategy == BTGreaterStrategyNumber || c.strategy == BTGreaterEqualStrategyNumber;
}

// In place of the operator's function: whether a value fulfils the comparison, by seconds.
static Datum fulfils(FunctionCallInfo call) {
    auto* search = static_cast<Search*>(call->flinfo->fn_extra);
    const randflake::Second second = second_of_datum(call->args[0].value);
    const bool before = second < search->boundary;
    (before ? search->last_before : search->first_beyond) = second;
    return BoolGetDatum(before == search->wants_before);
}

// P(column operator constant) among the values of the histogram; -1 when there is none.
//
// The server does a binary search, which ends between two bounds, of which it assumes the middle.
// The last two values that it asked about are these bounds. Each stands somewhere in its second.
static double probability_in_histogram(const Comparison& c, VariableStatData* column,
                                       FmgrInfo* function, Datum constant, Oid type) {
    const auto* search = static_cast<const Search*>(function->fn_extra);
    const bool has_equal =
        c.strategy == BTLessEqualStrategyNumber || c.strategy == BTGreaterEqualStrategyNumber;
    double result =
        ineq_histogram_selectivity(c.root, column, c.operator_oid, function, is_greater(c),
                                   has_equal, InvalidOid, constant, type);
    AttStatsSlot histogram;
    if (search->last_before >= search->first_beyond ||
        !get_attstatsslot(&histogram, column->statsTuple, STATISTIC_KIND_HISTOGRAM, InvalidOid,
                          ATTSTATSSLOT_VALUES))
        return result;
    const double part = (static_cast<double>(search->boundary - search->last_before) - 0.5) /
                        static_cast<double>(search->first_beyond - search->last_before);
    const double beyond_middle = (part - 0.5) / (histogram.nvalues - 1);
    result += is_greater(c) ? -beyond_middle : beyond_middle;
    CLAMP_PROBABILITY(result);
    free_attstatsslot(&histogram);
    return result;
}

// P(column operator constant), from the column's statistics.
static double probability_of_constant(const Comparison& c, VariableStatData* column,
                                      const Const* constant) {
    if (constant->constisnull)
        return 0;
    if (!HeapTupleIsValid(column->statsTuple))
        return DEFAULT_INEQ_SEL;

    // A value is before c in x < c and x >= c, and before or at c in the other two.
    const bool at_boundary =
        c.strategy == BTLessEqualStrategyNumber || c.strategy == BTGreaterStrategyNumber;
    Search search{second_of_datum(constant->constvalue) + (at_boundary ? 1 : 0),
                  is_less(c),
                  {PG_INT64_MAX},
                  {PG_INT64_MIN}};
    FmgrInfo function{};
    function.fn_addr = fulfils;
    function.fn_oid = get_opcode(c.operator_oid);  // whose privileges count
    function.fn_nargs = 2;
    function.fn_strict = true;
    function.fn_mcxt = CurrentMemoryContext;
    function.fn_extra = &search;

    double common;
    const double in_common =
        mcv_selectivity(column, &function, InvalidOid, constant->constvalue, true, &common);
    search.last_before = {PG_INT64_MAX};
    search.first_beyond = {PG_INT64_MIN};
    const double in_histogram =
        probability_in_histogram(c, column, &function, constant->constvalue, constant->consttype);

    const auto* statistics =
        reinterpret_cast<const FormData_pg_statistic*>(GETSTRUCT(column->statsTuple));
    double result = in_common + (1 - statistics->stanullfrac - common) *
                                    (in_histogram < 0 ? 0.5 : in_histogram);
    CLAMP_PROBABILITY(result);
    return result;
}

// P(left operator right).
static double probability(const Comparison& c, int relation) {
    VariableStatData column;
    Node* other;
    bool column_is_left;
    if ((!is_less(c) && !is_greater(c)) ||
        !get_restriction_variable(c.root, list_make2(c.left, c.right), relation, &column, &other,
                                  &column_is_left))
        return DEFAULT_INEQ_SEL;
    double result = DEFAULT_INEQ_SEL;
    if (IsA(other, Const))
        result = probability_of_constant(
            column_is_left ? c
                           : comparison(c.root, get_commutator(c.operator_oid), c.right, c.left),
            &column, reinterpret_cast<const Const*>(other));
    ReleaseVariableStats(column);
    return result;
}

// A comparison as a bound of a column. The other operand holds no column.
static Bound bound_of(const Comparison& c, Var** column) {
    if (!is_less(c) && !is_greater(c))
        return Bound::kNone;
    if (IsA(c.left, Var) && !contain_var_clause(c.right)) {
        *column = reinterpret_cast<Var*>(c.left);
        return is_less(c) ? Bound::kUpper : Bound::kLower;
    }
    if (IsA(c.right, Var) && !contain_var_clause(c.left)) {
        *column = reinterpret_cast<Var*>(c.right);
        return is_less(c) ? Bound::kLower : Bound::kUpper;
    }
    return Bound::kNone;
}

// P(x < upper) of the tightest upper bound among the restrictions of the column's relation; 0 when
// there is none.
static double probability_of_upper_bound(PlannerInfo* root, const Var* column, int relation) {
    const auto number = static_cast<int>(column->varno);
    if (column->varlevelsup != 0 || number <= 0 || number >= root->simple_rel_array_size ||
        root->simple_rel_array[number] == nullptr)
        return 0;

    double result = 0;
    ListCell* cell;
    foreach (cell, root->simple_rel_array[number]->baserestrictinfo) {
        auto* clause = reinterpret_cast<Node*>(lfirst_node(RestrictInfo, cell)->clause);
        if (!is_opclause(clause))
            continue;
        const auto* expression = reinterpret_cast<OpExpr*>(clause);
        if (list_length(expression->args) != 2)
            continue;
        const Comparison other =
            comparison(root, expression->opno, static_cast<Node*>(linitial(expression->args)),
                       static_cast<Node*>(lsecond(expression->args)));
        Var* bounded;
        if (bound_of(other, &bounded) != Bound::kUpper || !equal(bounded, column))
            continue;
        const double upper = probability(other, relation);
        result = result == 0 ? upper : Min(result, upper);
    }
    return result;
}

// P(lower <= x < upper) from the probabilities of both bounds, by the planner's rules for ranges: a
// default means "unknown", and a result that rounds to zero becomes a small number.
static double probability_of_range(double lower, double upper, double null_fraction) {
    static constexpr double kLittle = 1e-10;
    if (lower == DEFAULT_INEQ_SEL || upper == DEFAULT_INEQ_SEL)
        return DEFAULT_RANGE_INEQ_SEL;
    const double range = lower + upper - 1 + null_fraction;
    if (range > 0)
        return range;
    return range < -0.01 ? DEFAULT_RANGE_INEQ_SEL : kLittle;
}

SQL_FUNCTION(randflake_rangesel);
Datum randflake_rangesel(PG_FUNCTION_ARGS) {
    auto* root = reinterpret_cast<PlannerInfo*>(PG_GETARG_POINTER(0));
    auto* operands = reinterpret_cast<List*>(PG_GETARG_POINTER(2));
    const int relation = PG_GETARG_INT32(3);
    if (list_length(operands) != 2)
        PG_RETURN_FLOAT8(DEFAULT_INEQ_SEL);

    const Comparison compared =
        comparison(root, PG_GETARG_OID(1), static_cast<Node*>(linitial(operands)),
                   static_cast<Node*>(lsecond(operands)));
    double result = probability(compared, relation);
    Var* column;
    if (bound_of(compared, &column) != Bound::kLower)
        PG_RETURN_FLOAT8(result);
    const double upper = probability_of_upper_bound(root, column, relation);
    if (upper > 0) {
        const double null_fraction = nulltestsel(root, IS_NULL, reinterpret_cast<Node*>(column),
                                                 relation, JOIN_INNER, nullptr);
        result = probability_of_range(result, upper, null_fraction) / upper;
        CLAMP_PROBABILITY(result);
    }
    PG_RETURN_FLOAT8(result);
}
