#!/usr/bin/env sysbench
-- The five transactions of the TPC-C specification in its mix (clause 2), each an event that begins again after a
-- serialization failure or a deadlock.
local common = require("tpcc_common")

local function uniform(low, high)
   return sysbench.rand.uniform(low, high)
end

function thread_init()
   con = sysbench.sql.driver():connect()
   con:query("SET default_transaction_isolation = '" .. sysbench.opt.isolation .. "'")
end

function thread_done()
   con:disconnect()
end

-- A set of tables, a warehouse and a district by chance.
local function place()
   return uniform(1, sysbench.opt.tables), uniform(1, sysbench.opt.scale), uniform(1, common.DISTRICTS)
end

local function some_customer()
   return common.nurand(1023, 1, sysbench.opt.customers)
end

-- Another warehouse in `share` of 100 cases, if there is one.
local function perhaps_remote(w, share)
   if sysbench.opt.scale > 1 and uniform(1, 100) <= share then
      return uniform(1, sysbench.opt.scale - 1) + w - 1 >= sysbench.opt.scale and 1 or w % sysbench.opt.scale + 1
   end
   return w
end

-- The customer's number: given in 40 of 100 cases, else the middle one of those with a last name.
local function find_customer(set, w, d)
   if uniform(1, 100) <= 40 then
      return some_customer()
   end
   local name = common.last_name(common.nurand(255, 0, math.min(sysbench.opt.customers, 1000) - 1))
   local rs = con:query(string.format("SELECT c_id FROM customer%d WHERE c_w_id = %d AND c_d_id = %d AND c_last = '%s' ORDER BY c_first", set, w, d, name))
   local middle = math.floor((rs.nrows + 1) / 2)
   local found
   for _ = 1, middle do
      found = rs:fetch_row()[1]
   end
   return found and tonumber(found) or some_customer()
end

local function new_order()
   local set, w, d = place()
   local c = some_customer()
   local count = uniform(5, 15)
   local wrong = uniform(1, 100) == 1
   local lines, all_local = {}, 1
   for number = 1, count do
      local supply = perhaps_remote(w, 1)
      all_local = supply == w and all_local or 0
      lines[number] = { item = common.nurand(8191, 1, sysbench.opt.items), supply = supply, quantity = uniform(1, 10) }
   end
   if wrong then
      lines[count].item = sysbench.opt.items + 1
   end
   -- rows are always locked in the same order
   table.sort(lines, function(a, b) return a.supply < b.supply or a.supply == b.supply and a.item < b.item end)

   con:query("BEGIN")
   con:query_row(string.format("SELECT c_discount, c_last, c_credit, w_tax FROM customer%d, warehouse%d WHERE w_id = %d AND c_w_id = w_id AND c_d_id = %d AND c_id = %d",
      set, set, w, d, c))
   local order = tonumber((con:query_row(string.format(
      "UPDATE district%d SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = %d AND d_id = %d RETURNING d_next_o_id - 1, d_tax", set, w, d))))
   con:query(string.format("INSERT INTO orders%d VALUES (%d, %d, %d, %d, now(), NULL, %d, %d)", set, order, d, w, c, count, all_local))
   con:query(string.format("INSERT INTO new_order%d VALUES (%d, %d, %d)", set, order, d, w))
   for number, line in ipairs(lines) do
      local price = con:query_row(string.format("SELECT i_price, i_name, i_data FROM item%d WHERE i_id = %d", set, line.item))
      if price == nil then
         con:query("ROLLBACK")
         return
      end
      local stock, dist = con:query_row(string.format("SELECT s_quantity, s_dist FROM stock%d WHERE s_w_id = %d AND s_i_id = %d FOR UPDATE", set, line.supply, line.item))
      local left = tonumber(stock) - line.quantity
      con:query(string.format("UPDATE stock%d SET s_quantity = %d, s_ytd = s_ytd + %d, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + %d WHERE s_w_id = %d AND s_i_id = %d",
         set, left >= 10 and left or left + 91, line.quantity, line.supply == w and 0 or 1, line.supply, line.item))
      con:query(string.format("INSERT INTO order_line%d VALUES (%d, %d, %d, %d, %d, %d, NULL, %d, %.2f, '%s')", set, order, d, w, number, line.item, line.supply,
         line.quantity, math.min(line.quantity * tonumber(price), 9999), dist))
   end
   con:query("COMMIT")
end

local function payment()
   local set, w, d = place()
   local cw = perhaps_remote(w, 15)
   local cd = cw == w and d or uniform(1, common.DISTRICTS)
   local amount = uniform(100, 500000) / 100
   con:query("BEGIN")
   con:query(string.format("UPDATE warehouse%d SET w_ytd = w_ytd + %.2f WHERE w_id = %d", set, amount, w))
   local w_name = con:query_row(string.format("SELECT w_name, w_city FROM warehouse%d WHERE w_id = %d", set, w))
   con:query(string.format("UPDATE district%d SET d_ytd = d_ytd + %.2f WHERE d_w_id = %d AND d_id = %d", set, amount, w, d))
   local d_name = con:query_row(string.format("SELECT d_name, d_city FROM district%d WHERE d_w_id = %d AND d_id = %d", set, w, d))
   local c = find_customer(set, cw, cd)
   local credit = con:query_row(string.format("SELECT c_credit FROM customer%d WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d FOR UPDATE", set, cw, cd, c))
   local noted = credit == "BC" and string.format(", c_data = left('%d %d %d %d %d %.2f|' || c_data, 500)", c, cd, cw, d, w, amount) or ""
   con:query(string.format("UPDATE customer%d SET c_balance = c_balance - %.2f, c_ytd_payment = c_ytd_payment + %.2f, c_payment_cnt = c_payment_cnt + 1%s WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d",
      set, amount, amount, noted, cw, cd, c))
   con:query(string.format("INSERT INTO history%d VALUES (%d, %d, %d, %d, %d, now(), %.2f, '%s    %s')", set, c, cd, cw, d, w, amount, w_name, d_name))
   con:query("COMMIT")
end

local function order_status()
   local set, w, d = place()
   con:query("BEGIN")
   local c = find_customer(set, w, d)
   con:query_row(string.format("SELECT c_balance, c_first, c_middle, c_last FROM customer%d WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", set, w, d, c))
   local order = con:query_row(string.format("SELECT o_id, o_entry_d, o_carrier_id FROM orders%d WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d ORDER BY o_id DESC LIMIT 1", set, w, d, c))
   if order then
      local rs = con:query(string.format("SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line%d WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %s", set, w, d, order))
      for _ = 1, rs.nrows do
         assert(rs:fetch_row()[1], "a line of an order has an item")
      end
   end
   con:query("COMMIT")
end

local function delivery()
   local set, w = place()
   local carrier = uniform(1, 10)
   con:query("BEGIN")
   for d = 1, common.DISTRICTS do
      local order = con:query_row(string.format(
         "DELETE FROM new_order%d WHERE no_w_id = %d AND no_d_id = %d AND no_o_id = (SELECT min(no_o_id) FROM new_order%d WHERE no_w_id = %d AND no_d_id = %d) RETURNING no_o_id",
         set, w, d, set, w, d))
      if order then
         local c = con:query_row(string.format("UPDATE orders%d SET o_carrier_id = %d WHERE o_w_id = %d AND o_d_id = %d AND o_id = %s RETURNING o_c_id", set, carrier, w, d, order))
         con:query(string.format("UPDATE order_line%d SET ol_delivery_d = now() WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %s", set, w, d, order))
         con:query(string.format(
            "UPDATE customer%d SET c_balance = c_balance + (SELECT sum(ol_amount) FROM order_line%d WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %s), c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = %d AND c_d_id = %d AND c_id = %s",
            set, set, w, d, order, w, d, c))
      end
   end
   con:query("COMMIT")
end

local function stock_level()
   local set, w, d = place()
   con:query("BEGIN")
   local next_order = tonumber((con:query_row(string.format("SELECT d_next_o_id FROM district%d WHERE d_w_id = %d AND d_id = %d", set, w, d))))
   con:query_row(string.format(
      "SELECT count(DISTINCT s_i_id) FROM order_line%d, stock%d WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id < %d AND ol_o_id >= %d AND s_w_id = ol_w_id AND s_i_id = ol_i_id AND s_quantity < %d",
      set, set, w, d, next_order, next_order - 20, uniform(10, 20)))
   con:query("COMMIT")
end

function event()
   local drawn = uniform(1, 100)
   if drawn <= 45 then
      new_order()
   elseif drawn <= 88 then
      payment()
   elseif drawn <= 92 then
      order_status()
   elseif drawn <= 96 then
      delivery()
   else
      stock_level()
   end
end

sysbench.cmdline.commands = {
   prepare = {common.prepare, sysbench.cmdline.PARALLEL_COMMAND},
   check = {common.check},
   cleanup = {common.cleanup}
}
