-- An order-entry load after the TPC-C specification: tables, first contents, consistency conditions.
--
-- There are --tables sets of the nine tables, each with --scale warehouses. --customers and --items are smaller than the
-- specification's for short tests.
local common = {}

common.DISTRICTS = 10
local TABLES = {"warehouse", "district", "customer", "history", "orders", "new_order", "order_line", "stock", "item"}
local SYLLABLES = {"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}
local ORIGINAL_SHARE = 10

sysbench.cmdline.options = {
   scale = {"Warehouses in each set of tables", 10},
   tables = {"Sets of tables", 1},
   customers = {"Customers of a district", 3000},
   items = {"Items", 100000},
   isolation = {"Isolation level of the transactions", "repeatable read"},
   foreign_keys = {"Make foreign keys", true}
}

local function uniform(low, high)
   return sysbench.rand.uniform(low, high)
end

local function letters(low, high)
   return sysbench.rand.string(("@"):rep(uniform(low, high)))
end

local function digits(count)
   return sysbench.rand.string(("#"):rep(count))
end

-- One of `share` percent.
local function chance(share)
   return uniform(1, 100) <= share
end

function common.last_name(number)
   return SYLLABLES[math.floor(number / 100) % 10 + 1] .. SYLLABLES[math.floor(number / 10) % 10 + 1] .. SYLLABLES[number % 10 + 1]
end

-- The specification's non-uniform distribution (clause 2.1.6), with constants in proportion to smaller tables.
function common.nurand(a, low, high)
   local mask = math.min(a, high)
   return (bit.bor(uniform(0, mask), uniform(low, high)) + math.floor(mask / 3)) % (high - low + 1) + low
end

local function data()
   local text = letters(26, 50)
   if chance(ORIGINAL_SHARE) then
      local place = uniform(1, #text - 8)
      text = text:sub(1, place - 1) .. "ORIGINAL" .. text:sub(place + 8)
   end
   return text
end

local function address()
   return string.format("'%s', '%s', '%s', '%s', '%s11111'", letters(10, 20), letters(10, 20), letters(10, 20), letters(2, 2), digits(4))
end

local DEFINITIONS = {
   warehouse = [[w_id int PRIMARY KEY, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), w_city varchar(20),
      w_state char(2), w_zip char(9), w_tax numeric(4, 4), w_ytd numeric(12, 2)]],
   district = [[d_id int, d_w_id int, d_name varchar(10), d_street_1 varchar(20), d_street_2 varchar(20), d_city varchar(20),
      d_state char(2), d_zip char(9), d_tax numeric(4, 4), d_ytd numeric(12, 2), d_next_o_id int, PRIMARY KEY (d_w_id, d_id)]],
   customer = [[c_id int, c_d_id int, c_w_id int, c_first varchar(16), c_middle char(2), c_last varchar(16),
      c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), c_state char(2), c_zip char(9), c_phone char(16),
      c_since timestamp, c_credit char(2), c_credit_lim numeric(12, 2), c_discount numeric(4, 4), c_balance numeric(12, 2),
      c_ytd_payment numeric(12, 2), c_payment_cnt int, c_delivery_cnt int, c_data text, PRIMARY KEY (c_w_id, c_d_id, c_id)]],
   history = [[h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp, h_amount numeric(6, 2),
      h_data varchar(24)]],
   orders = [[o_id int, o_d_id int, o_w_id int, o_c_id int, o_entry_d timestamp, o_carrier_id int, o_ol_cnt int,
      o_all_local int, PRIMARY KEY (o_w_id, o_d_id, o_id)]],
   new_order = "no_o_id int, no_d_id int, no_w_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
   order_line = [[ol_o_id int, ol_d_id int, ol_w_id int, ol_number int, ol_i_id int, ol_supply_w_id int,
      ol_delivery_d timestamp, ol_quantity int, ol_amount numeric(6, 2), ol_dist_info char(24),
      PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)]],
   stock = [[s_i_id int, s_w_id int, s_quantity int, s_dist char(24), s_ytd int, s_order_cnt int, s_remote_cnt int,
      s_data varchar(50), PRIMARY KEY (s_w_id, s_i_id)]],
   item = "i_id int PRIMARY KEY, i_im_id int, i_name varchar(24), i_price numeric(5, 2), i_data varchar(50)"
}

local INDEXES = {
   "CREATE INDEX customer_name%d ON customer%d (c_w_id, c_d_id, c_last, c_first)",
   "CREATE INDEX orders_customer%d ON orders%d (o_w_id, o_d_id, o_c_id, o_id)"
}

local FOREIGN_KEYS = {
   "ALTER TABLE district%d ADD FOREIGN KEY (d_w_id) REFERENCES warehouse%d",
   "ALTER TABLE customer%d ADD FOREIGN KEY (c_w_id, c_d_id) REFERENCES district%d",
   "ALTER TABLE orders%d ADD FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer%d",
   "ALTER TABLE new_order%d ADD FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders%d",
   "ALTER TABLE order_line%d ADD FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders%d",
   "ALTER TABLE stock%d ADD FOREIGN KEY (s_i_id) REFERENCES item%d"
}

-- Inserts what `row(i)` says for i from `low` to `high`; nil is no row.
local function fill(con, name, low, high, row)
   con:bulk_insert_init("INSERT INTO " .. name .. " VALUES")
   for i = low, high do
      local values = row(i)
      if values then
         con:bulk_insert_next("(" .. values .. ")")
      end
   end
   con:bulk_insert_done()
end

-- 1 to `count` in any order.
local function permutation(count)
   local list = {}
   for i = 1, count do
      list[i] = i
   end
   for i = count, 2, -1 do
      local j = uniform(1, i)
      list[i], list[j] = list[j], list[i]
   end
   return list
end

local function load_orders(con, set, w, d)
   local customers = permutation(sysbench.opt.customers)
   local undelivered = math.floor(sysbench.opt.customers * 0.7) + 1
   local lines = {}
   for o = 1, sysbench.opt.customers do
      lines[o] = uniform(5, 15)
   end
   fill(con, "orders" .. set, 1, sysbench.opt.customers, function(o)
      local carrier = o < undelivered and uniform(1, 10) or "NULL"
      return string.format("%d, %d, %d, %d, now(), %s, %d, 1", o, d, w, customers[o], carrier, lines[o])
   end)
   fill(con, "new_order" .. set, undelivered, sysbench.opt.customers, function(o)
      return string.format("%d, %d, %d", o, d, w)
   end)
   con:bulk_insert_init("INSERT INTO order_line" .. set .. " VALUES")
   for o = 1, sysbench.opt.customers do
      local delivered = o < undelivered
      for number = 1, lines[o] do
         con:bulk_insert_next(string.format("(%d, %d, %d, %d, %d, %d, %s, 5, %.2f, '%s')", o, d, w, number, uniform(1, sysbench.opt.items), w,
            delivered and "now()" or "NULL", delivered and 0 or uniform(1, 999999) / 100, letters(24, 24)))
      end
   end
   con:bulk_insert_done()
end

local function load_warehouse(con, set, w)
   con:query(string.format("INSERT INTO warehouse%d VALUES (%d, '%s', %s, %.4f, %d)", set, w, letters(6, 10), address(),
      uniform(0, 2000) / 10000, 30000 * common.DISTRICTS))
   fill(con, "district" .. set, 1, common.DISTRICTS, function(d)
      return string.format("%d, %d, '%s', %s, %.4f, 30000, %d", d, w, letters(6, 10), address(), uniform(0, 2000) / 10000, sysbench.opt.customers + 1)
   end)
   fill(con, "stock" .. set, 1, sysbench.opt.items, function(i)
      return string.format("%d, %d, %d, '%s', 0, 0, 0, '%s'", i, w, uniform(10, 100), letters(24, 24), data())
   end)
   for d = 1, common.DISTRICTS do
      fill(con, "customer" .. set, 1, sysbench.opt.customers, function(c)
         local number = c <= 1000 and c - 1 or common.nurand(255, 0, 999)
         return string.format("%d, %d, %d, '%s', 'OE', '%s', %s, '%s', now(), '%s', 50000, %.4f, -10, 10, 1, 0, '%s'", c, d, w, letters(8, 16),
            common.last_name(number), address(), digits(16), chance(10) and "BC" or "GC", uniform(0, 5000) / 10000, letters(300, 500))
      end)
      fill(con, "history" .. set, 1, sysbench.opt.customers, function(c)
         return string.format("%d, %d, %d, %d, %d, now(), 10, '%s'", c, d, w, d, w, letters(12, 24))
      end)
      load_orders(con, set, w, d)
   end
end

local function create(con, set)
   for _, name in ipairs(TABLES) do
      con:query(string.format("CREATE TABLE %s%d (%s)", name, set, DEFINITIONS[name]))
   end
end

local function finish(con, set)
   for _, index in ipairs(INDEXES) do
      con:query(index:format(set, set))
   end
   for _, key in ipairs(sysbench.opt.foreign_keys and FOREIGN_KEYS or {}) do
      con:query(key:format(set, set))
   end
   for _, name in ipairs(TABLES) do
      con:query("ANALYZE " .. name .. set)
   end
end

-- Each thread makes the sets that are its share.
function common.prepare()
   local con = sysbench.sql.driver():connect()
   for set = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
      create(con, set)
      fill(con, "item" .. set, 1, sysbench.opt.items, function(i)
         return string.format("%d, %d, '%s', %.2f, '%s'", i, uniform(1, 10000), letters(14, 24), uniform(100, 10000) / 100, data())
      end)
      for w = 1, sysbench.opt.scale do
         load_warehouse(con, set, w)
      end
      finish(con, set)
   end
end

function common.cleanup()
   local con = sysbench.sql.driver():connect()
   for set = 1, sysbench.opt.tables do
      for _, name in ipairs(TABLES) do
         con:query(string.format("DROP TABLE IF EXISTS %s%d CASCADE", name, set))
      end
   end
end

-- The consistency conditions 1 to 4 of clause 3.3.2; each query counts what breaks one.
local CONDITIONS = {
   [[SELECT count(*) FROM warehouse%d WHERE w_ytd <> (SELECT sum(d_ytd) FROM district%d WHERE d_w_id = w_id)]],
   [[SELECT count(*) FROM district%d LEFT JOIN
         (SELECT o_w_id, o_d_id, max(o_id) AS last FROM orders%d GROUP BY 1, 2) o ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN
         (SELECT no_w_id, no_d_id, max(no_o_id) AS last FROM new_order%d GROUP BY 1, 2) n ON no_w_id = d_w_id AND no_d_id = d_id
      WHERE d_next_o_id - 1 IS DISTINCT FROM o.last OR n.last IS NOT NULL AND n.last <> o.last]],
   [[SELECT count(*) FROM (SELECT 1 FROM new_order%d GROUP BY no_w_id, no_d_id
         HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) broken]],
   [[SELECT count(*) FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS lines FROM orders%d GROUP BY 1, 2) o FULL JOIN
         (SELECT ol_w_id, ol_d_id, count(*) AS lines FROM order_line%d GROUP BY 1, 2) l ON o_w_id = ol_w_id AND o_d_id = ol_d_id
      WHERE o.lines IS DISTINCT FROM l.lines]]
}

-- Whether all conditions hold; says so for each.
function common.check()
   local con = sysbench.sql.driver():connect()
   local good = true
   for set = 1, sysbench.opt.tables do
      for number, query in ipairs(CONDITIONS) do
         local broken = tonumber((con:query_row((query:gsub("%%d", tostring(set))))))
         print(string.format("set %d, condition %d: %s", set, number, broken == 0 and "holds" or "broken " .. broken .. " times"))
         good = good and broken == 0
      end
   end
   return good
end

return common
