// Tells the planner which fraction of the values each of the operators <, <=, > and >= selects.
// PostgreSQL's estimators interpolate within a bin of the histogram only for built-in types. So
// this code passes the column and the constant as bigint, which has the same order. But it passes
// randflake's operator, because the estimators need this operator to find the column's statistics
// and indexes.
//
// The planner combines two bounds of a range only if the operators have PostgreSQL's estimators. So
// for a lower bound, this code looks for an upper bound on the same column. The code returns
// P(lower <= x < upper) / P(x < upper). The planner multiplies this by P(x < upper).

#include "pg/base/sql_function.h"

namespace {
struct Comparison {
    PlannerInfo* root;
    Oid operator_oid;
    Node* left;
    Node* right;
    int strategy;  // the operator's number in the B-tree family; 0: none
};

enum class Bound : uint8 { kNone, kLower, kUpper };
}  // namespace

static Comparison comparison(PlannerInfo* root, Oid operator_oid, const List* operands) {
    Comparison result{root, operator_oid, static_cast<Node*>(linitial(operands)),
                      static_cast<Node*>(lsecond(operands)), 0};
    const TypeCacheEntry* type = lookup_type_cache(exprType(result.left), TYPECACHE_BTREE_OPFAMILY);
    result.strategy = get_op_opfamily_strategy(operator_oid, type->btree_opf);
    return result;
}

static bool is_less(const Comparison& c) {
    return c.strategy == BTLessStrategyNumber || c.strategy == BTLessEqualStrategyNumber;
}

static bool is_greater(const Comparison& c) {
    return c.strategy == BTGreaterStrategyNumber || c.strategy == BTGreaterEqualStrategyNumber;
}

static Node* as_bigint(Node* operand) {
    return reinterpret_cast<Node*>(makeRelabelType(reinterpret_cast<Expr*>(operand), INT8OID, -1,
                                                   InvalidOid, COERCE_IMPLICIT_CAST));
}

// Returns P(left operator right) as PostgreSQL's estimators compute it.
static double probability(const Comparison& c, int relation) {
    static constexpr PGFunction kEstimators[] = {nullptr, scalarltsel, scalarlesel,
                                                 nullptr, scalargesel, scalargtsel};
    if (!is_less(c) && !is_greater(c)) return DEFAULT_INEQ_SEL;
    return DatumGetFloat8(DirectFunctionCall4(
        kEstimators[c.strategy], PointerGetDatum(c.root), ObjectIdGetDatum(c.operator_oid),
        PointerGetDatum(list_make2(as_bigint(c.left), as_bigint(c.right))),
        Int32GetDatum(relation)));
}

// If one operand is a column and the other contains no column, sets *column and returns the bound.
static Bound bound_of(const Comparison& c, Var** column) {
    if (!is_less(c) && !is_greater(c)) return Bound::kNone;
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

// Returns P(x < upper) for the tightest upper bound in the relation's restrictions, or 0 if none.
static double probability_of_upper_bound(PlannerInfo* root, const Var* column, int relation) {
    const auto number = static_cast<int>(column->varno);
    if (column->varlevelsup != 0 || number <= 0 || number >= root->simple_rel_array_size ||
        root->simple_rel_array[number] == nullptr)
        return 0;

    double result = 0;
    ListCell* cell;
    foreach (cell, root->simple_rel_array[number]->baserestrictinfo) {
        auto* clause = reinterpret_cast<Node*>(lfirst_node(RestrictInfo, cell)->clause);
        if (!is_opclause(clause)) continue;
        const auto* expression = reinterpret_cast<OpExpr*>(clause);
        if (list_length(expression->args) != 2) continue;
        const Comparison other = comparison(root, expression->opno, expression->args);
        Var* bounded;
        if (bound_of(other, &bounded) != Bound::kUpper || !equal(bounded, column)) continue;
        const double upper = probability(other, relation);
        result = result == 0 ? upper : Min(result, upper);
    }
    return result;
}

// Returns P(lower <= x < upper) by the planner's rules for ranges.
static double probability_of_range(double lower, double upper, double null_fraction) {
    static constexpr double kLittle = 1e-10;
    if (lower == DEFAULT_INEQ_SEL || upper == DEFAULT_INEQ_SEL) return DEFAULT_RANGE_INEQ_SEL;
    const double range = lower + upper - 1 + null_fraction;
    if (range > 0) return range;
    return range < -0.01 ? DEFAULT_RANGE_INEQ_SEL : kLittle;
}

SQL_FUNCTION(randflake_rangesel) {
    auto* root = reinterpret_cast<PlannerInfo*>(PG_GETARG_POINTER(0));
    auto* operands = reinterpret_cast<List*>(PG_GETARG_POINTER(2));
    const int relation = PG_GETARG_INT32(3);
    if (list_length(operands) != 2) PG_RETURN_FLOAT8(DEFAULT_INEQ_SEL);

    const Comparison compared = comparison(root, PG_GETARG_OID(1), operands);
    double result = probability(compared, relation);
    Var* column;
    if (bound_of(compared, &column) != Bound::kLower) PG_RETURN_FLOAT8(result);
    const double upper = probability_of_upper_bound(root, column, relation);
    if (upper > 0) {
        const double null_fraction = nulltestsel(root, IS_NULL, reinterpret_cast<Node*>(column),
                                                 relation, JOIN_INNER, nullptr);
        result = probability_of_range(result, upper, null_fraction) / upper;
        CLAMP_PROBABILITY(result);
    }
    PG_RETURN_FLOAT8(result);
}
