// Takes identifiers through packages of npm: see tools.sh. Without arguments, prints
// "LABEL|PACKAGES" of each tool. The version of the first package is the tool's.
//
//   node npm.mjs LABEL CSV JSON SCRATCH

import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const directory = process.env.INTERCHANGE_PACKAGES;
const require = createRequire(path.join(directory, 'package.json'));
const load = (name) => require(name);
const [, , label, csvFile, jsonFile, scratch] = process.argv;
const csv = () => readFileSync(csvFile, 'utf8');
const lines = () => csv().trim().split('\n').slice(1);
// What a program without care has: a number for each form of digits.
const values = () => JSON.parse(readFileSync(jsonFile, 'utf8'));
// What a program with care has: a BigInt for each form of digits.
const exact = () => (typeof values()[0] === 'number' ? lines().map(BigInt) : lines());

async function duckdb(source) {
  const { DuckDBInstance } = load('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create()).connect();
  return (await connection.runAndReadAll(`SELECT * FROM ${source}`)).getRows().map(([x]) => x);
}

const tools = {
  'csvtojson': ['csvtojson@2.0.14', async () => (await load('csvtojson')({ checkType: true }).fromFile(csvFile)).map((x) => x.id)],
  'd3-dsv, autoType': ['d3-dsv@3.0.2', async () => {
    const { autoType, csvParse } = await import(path.join(directory, 'node_modules/d3-dsv/dist/d3-dsv.mjs'));
    return csvParse(csv(), autoType).map((x) => x.id);
  }],
  'csv-parse, cast': ['csv-parse@7.0.3', () => load('csv-parse/sync').parse(csv(), { cast: true, columns: true }).map((x) => x.id)],
  'Papa Parse, dynamicTyping': ['papaparse@5.7.1', () => load('papaparse').parse(csv().trim(), { header: true, dynamicTyping: true }).data.map((x) => x.id)],
  'ExcelJS, csv': ['exceljs@4.4.0', async () => {
    const workbook = new (load('exceljs').Workbook)();
    const rows = [];
    (await workbook.csv.readFile(csvFile)).eachRow((row) => rows.push(row.getCell(1).value));
    return rows.slice(1);
  }],
  'SheetJS, CSV to XLSX': ['xlsx@0.18.5', () => {
    const XLSX = load('xlsx');
    const book = XLSX.read(XLSX.write(XLSX.read(csv(), { type: 'string' }), { type: 'buffer', bookType: 'xlsx' }));
    return XLSX.utils.sheet_to_json(book.Sheets[book.SheetNames[0]]).map((x) => x.id);
  }],
  'js-yaml 5.5.0 writes, yaml reads': ['yaml@2.9.1 js-yaml@5.5.0', () => {
    const numbers = typeof values()[0] === 'number';
    return load('yaml').parse(numbers ? lines().map((x) => `- ${x}`).join('\n') : load('js-yaml').dump(lines()));
  }],
  'bson, EJSON': ['bson@7.3.4', () => {
    const { EJSON, Long } = load('bson');
    const stored = exact().map((x) => (typeof x === 'bigint' ? Long.fromBigInt(x) : x));
    return EJSON.parse(EJSON.stringify(stored));
  }],
  'parquetjs-lite, INT64 or UTF8': ['parquetjs-lite@0.8.7', async () => {
    const parquet = load('parquetjs-lite');
    const stored = exact(), type = typeof stored[0] === 'bigint' ? 'INT64' : 'UTF8';
    const writer = await parquet.ParquetWriter.openFile(new parquet.ParquetSchema({ id: { type } }), `${scratch}/p`);
    for (const id of stored) await writer.appendRow({ id });
    await writer.close();
    const cursor = (await parquet.ParquetReader.openFile(`${scratch}/p`)).getCursor();
    const rows = [];
    for (let row; (row = await cursor.next()); ) rows.push(row.id);
    return rows;
  }],
  'Apache Arrow': ['apache-arrow@21.2.0', () => {
    const { tableFromArrays, tableFromIPC, tableToIPC } = load('apache-arrow');
    const stored = exact();
    const id = typeof stored[0] === 'bigint' ? BigInt64Array.from(stored) : stored;
    return [...tableFromIPC(tableToIPC(tableFromArrays({ id }))).getChild('id')];
  }],
  'MessagePack': ['@msgpack/msgpack@3.1.3', () => {
    const { decode, encode } = load('@msgpack/msgpack');
    return decode(encode(exact(), { useBigInt64: true }));
  }],
  'CBOR (cbor-x)': ['cbor-x@1.6.9', () => { const { decode, encode } = load('cbor-x'); return decode(encode(exact())); }],
  'DuckDB, read_csv': ['@duckdb/node-api@1.5.6-r.1', () => duckdb(`read_csv('${csvFile}')`)],
  'DuckDB, read_csv of 10 lines': ['@duckdb/node-api@1.5.6-r.1', async () => {
    const rows = lines(), result = [];
    for (let i = 0; i < rows.length; i += 10) {
      writeFileSync(`${scratch}/part`, `id\n${rows.slice(i, i + 10).join('\n')}\n`);
      result.push(...(await duckdb(`read_csv('${scratch}/part')`)));
    }
    return result;
  }],
  'DuckDB, read_json': ['@duckdb/node-api@1.5.6-r.1', () => {
    writeFileSync(`${scratch}/j`, `[${readFileSync(jsonFile, 'utf8').trim().slice(1, -1).split(',').map((x) => `{"id":${x}}`).join(',')}]`);
    return duckdb(`read_json('${scratch}/j')`);
  }],
};

if (label) for (const value of await tools[label][1]()) console.log(String(value));
else for (const [name, [packages]] of Object.entries(tools)) console.log(`${name}|${packages}`);
