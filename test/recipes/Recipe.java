import java.sql.*;
import java.util.*;
import java.util.stream.*;

public class Recipe {
    static Connection connection;

    // Returns the first column of a query's first row, or the first key that a statement makes.
    static ResultSet first(String query, Object... values) throws SQLException {
        PreparedStatement statement = connection.prepareStatement(query);
        for (int i = 0; i < values.length; i++)
            statement.setObject(i + 1, values[i]);
        ResultSet result = statement.executeQuery();
        result.next();
        return result;
    }

    static String join(Array array) throws SQLException {
        return Arrays.stream((Object[]) array.getArray()).map(Object::toString)
            .collect(Collectors.joining(","));
    }

    public static void main(String[] arguments) throws Exception {
        var source = new org.postgresql.ds.PGSimpleDataSource();
        source.setURL(String.format("jdbc:postgresql://%s:%s/%s?user=%s&currentSchema=public,randflake", System.getenv("PGHOST"),
            System.getenv("PGPORT"), System.getenv("PGDATABASE"), System.getenv("PGUSER")));
        connection = source.getConnection();

        // Inserts a row, gets its key, and finds the row by its key.
        PreparedStatement insert = connection.prepareStatement(
            "INSERT INTO customer (name) VALUES (?)", new String[] {"id"});
        insert.setString(1, "Ada");
        insert.executeUpdate();
        ResultSet keys = insert.getGeneratedKeys();
        keys.next();
        long id = keys.getLong(1);
        String text = Keys.toText(id);
        String name = first("SELECT name FROM customer WHERE id = ?",
            Keys.fromText(text)).getString(1);
        System.out.println("customer " + id + " " + text + " " + name);

        String pen = first("INSERT INTO purchase (item) VALUES (?) RETURNING id", "pen").getString(1);
        ResultSet found = Keys.purchase(connection, pen);
        found.next();
        String item = found.getString(1);
        System.out.println("purchase " + pen + " " + item);

        long bob = first("INSERT INTO customer (name) VALUES (?) RETURNING id", "Bob").getLong(1);
        String ink = first("INSERT INTO purchase (item) VALUES (?) RETURNING id", "ink").getString(1);
        Array customers = first("SELECT array_agg(id ORDER BY name) FROM customer WHERE id = ANY (?)",
            connection.createArrayOf("bigint", new Long[] {id, bob})).getArray(1);
        Array purchases = first("SELECT array_agg(id ORDER BY item) FROM purchase WHERE id = ANY (?)",
            Keys.array(connection, pen, ink)).getArray(1);
        System.out.println("arrays " + join(customers) + " " + join(purchases));

        var identifiers = new Identifiers(source, new ArrayDeque<>());
        Set<Long> many = new HashSet<>();
        for (int i = 0; i < 2500; i++)
            many.add(identifiers.next());
        if (many.size() != 2500)
            throw new AssertionError(many.size());

        // A malformed key must raise an error.
        try {
            Keys.purchase(connection, "42");
        } catch (SQLException error) {
            System.out.println("malformed " + (error.getSQLState().startsWith("22") ? 404 : 500));
        }
        connection.close();
    }
}
