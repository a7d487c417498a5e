// Uses the JavaScript mapper that the argument names. The mapper's recipe makes the models.

import { fromText, toText } from './text_form.mjs';

const recipe = await import(`./${process.argv[2]}.mjs`);
const mappers = {
  async drizzle() {
    const { drizzle } = await import('drizzle-orm/node-postgres');
    const { migrate } = await import('drizzle-orm/node-postgres/migrator');
    const { eq, inArray } = await import('drizzle-orm');
    const { bought, ...tables } = await import('./schema.mjs');
    const { customer, purchase } = tables;
    const db = drizzle(new (await import('pg')).default.Pool());
    await migrate(db, { migrationsFolder: './migrations' });
    return {
      add: async (table, rows) => db.insert(tables[table]).values(rows).returning(),
      find: async (table, id) => (await db.select().from(tables[table]).where(eq(tables[table].id, id)))[0],
      customers: (ids) => db.select().from(customer).where(inArray(customer.id, ids)).orderBy(customer.name),
      purchases: (ids) => db.select().from(purchase).where(recipe.purchases(ids)).orderBy(purchase.item),
      async buy(ada, pen) {
        await db.insert(bought).values({ customerId: ada.id, purchaseId: pen.id });
        const both = db.select().from(purchase).innerJoin(bought, eq(bought.purchaseId, purchase.id));
        return (await both.where(eq(bought.customerId, ada.id))).map((row) => row.purchase);
      },
      code: (error) => error.cause.code,
      close: () => db.$client.end(),
    };
  },
  sequelize() {
    const { Customer, Purchase, sequelize } = recipe;
    const model = (table) => (table === 'customer' ? Customer : Purchase);
    return {
      add: (table, rows) => (rows[1] ? model(table).bulkCreate(rows, { returning: ['id'] })
        : model(table).create(rows[0]).then((row) => [row])),
      find: (table, id) => model(table).findByPk(String(id)),
      customers: (id) => Customer.findAll({ where: { id }, order: ['name'] }),
      purchases: (id) => Purchase.findAll({ where: { id }, order: ['item'] }),
      buy: async (ada, pen) => { await ada.addPurchase(pen); return ada.getPurchases(); },
      code: (error) => error.original.code,
      close: () => sequelize.close(),
    };
  },
  async typeorm() {
    const { In } = await import('typeorm');
    const [customers, purchases] = ['customer', 'purchase'].map((name) => recipe.source.getRepository(name));
    const repository = (table) => (table === 'customer' ? customers : purchases);
    return {
      add: async (table, rows) => (rows[1] ? (await repository(table).insert(rows)).identifiers
        : [await repository(table).save(rows[0])]),
      find: (table, id) => repository(table).findOneBy({ id: String(id) }),
      customers: (ids) => customers.find({ where: { id: In(ids) }, order: { name: 'ASC' } }),
      purchases: (ids) => purchases.createQueryBuilder('p').where('p.id = ANY (:ids)', { ids }).orderBy('p.item').getMany(),
      async buy(ada, pen) {
        await customers.save({ id: ada.id, purchases: [pen] });
        return (await customers.findOne({ where: { id: ada.id }, relations: ['purchases'] })).purchases;
      },
      code: (error) => error.driverError.code,
      close: () => recipe.source.destroy(),
    };
  },
  mikroorm() {
    const { orm } = recipe;
    const em = () => orm.em.fork();
    const find = (table, id, options) => em().findOne(table, id, options);
    return {
      async add(table, rows) {
        const manager = em();
        const made = rows.map((row) => manager.create(table, row));
        await manager.flush();
        return made;
      },
      find,
      customers: (id) => em().find('customer', { id }, { orderBy: { name: 'asc' } }),
      purchases: (id) => em().find('purchase', { id }, { orderBy: { item: 'asc' } }),
      async buy({ id }, pen) {
        const manager = em();
        (await manager.findOne('customer', id, { populate: ['purchases'] })).purchases.add(manager.getReference('purchase', pen.id));
        await manager.flush();
        return (await find('customer', id, { populate: ['purchases'] })).purchases.getItems();
      },
      code: (error) => error.code,
      close: () => orm.close(),
    };
  },
  objection() {
    const { Customer, Purchase } = recipe;
    const model = (table) => (table === 'customer' ? Customer : Purchase);
    return {
      add: (table, rows) => model(table).query().insert(rows),
      find: (table, id) => model(table).query().findById(String(id)),
      customers: (ids) => Customer.query().findByIds(ids).orderBy('name'),
      purchases: (ids) => Purchase.query().findByIds(ids).orderBy('item'),
      async buy(ada, pen) {
        await ada.$relatedQuery('purchases').relate(pen.id);
        return ada.$relatedQuery('purchases');
      },
      code: (error) => error.nativeError.code,
      close: () => Customer.knex().destroy(),
    };
  },
  prisma() {
    const { db } = recipe;
    return {
      add: async (table, rows) => (rows[1] ? db[table].createManyAndReturn({ data: rows })
        : [await db[table].create({ data: rows[0] })]),
      find: (table, id) => db[table].findUnique({ where: { id } }),
      customers: (ids) => db.customer.findMany({ where: { id: { in: ids } }, orderBy: { name: 'asc' } }),
      purchases: recipe.purchases,
      number: recipe.number,
      async buy(ada, pen) {
        await db.bought.create({ data: { customer_id: ada.id, purchase_id: pen.id } });
        const include = { purchases: { include: { purchase: true } } };
        const { purchases } = await db.customer.findUnique({ where: { id: ada.id }, include });
        return purchases.map((row) => row.purchase);
      },
      code: (error) => error.code.replace('P2007', '22'),
      close: () => db.$disconnect(),
    };
  },
};

const mapper = await mappers[process.argv[2]]();
const [[ada], [bob]] = [await mapper.add('customer', [{ name: 'Ada' }]), await mapper.add('customer', [{ name: 'Bob' }])];
const [[pen], [ink]] = [await mapper.add('purchase', [{ item: 'pen' }]), await mapper.add('purchase', [{ item: 'ink' }])];
const byId = await mapper.find('customer', fromText(toText(ada.id)));
console.log('customer', String(ada.id), toText(ada.id), byId.name);
console.log('purchase', pen.id, (await mapper.find('purchase', pen.id)).item);
const lists = [await mapper.customers([ada.id, bob.id]), await mapper.purchases([pen.id, ink.id])];
console.log('arrays', ...lists.map((rows) => rows.map((row) => row.id).join()));

const names = Array.from({ length: 1000 }, (_, n) => `bulk ${n}`);
const made = [await mapper.add('customer', names.map((name) => ({ name }))),
  await mapper.add('purchase', names.map((item) => ({ item })))];
console.log('bulk', ...made.map((rows) => new Set(rows.map((row) => row.id)).size));

console.log('json', toText(ada.id), JSON.parse(JSON.stringify(pen)).id);
const number = mapper.number ? await mapper.number(ada.id) : byId.number;
console.log('number', Number.isSafeInteger(number) && number);
console.log('bought', (await mapper.buy(ada, pen)).map((p) => p.id).join());
await mapper.find('purchase', '42').catch((error) => console.log('malformed', /^22/.test(mapper.code(error)) && 404));
await mapper.close();
