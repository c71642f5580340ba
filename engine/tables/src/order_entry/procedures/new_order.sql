declare
  warehouse_tax numeric;
  district_tax numeric;
  discount numeric;
  name text;
  brand text;
  original text;
  dist_info text;
  price numeric;
  quantity_left int;
  amount numeric;
begin
  select w_tax into strict warehouse_tax from warehouse where w_id = home;
  update district set d_next_o_id = d_next_o_id + 1 where d_w_id = home and d_id = place
    returning d_next_o_id - 1, d_tax into strict number, district_tax;
  select c_discount, c_last, c_credit into strict discount, last_name, credit from customer
    where c_w_id = home and c_d_id = place and c_id = buyer;
  insert into orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
    values (number, place, home, buyer, current_timestamp, null, cardinality(items), (home = all (supplies))::int);
  insert into new_order (no_o_id, no_d_id, no_w_id) values (number, place, home);
  total := 0;
  for line in 1 .. cardinality(items) loop
    select i_price, i_name, i_data into price, name, brand from item where i_id = items[line];
    if not found then
      -- Clause 2.4.2.3: an item that does not exist rolls the order back.
      rollback;
      number := null;
      total := null;
      lines := null;
      return;
    end if;
    update stock set
      s_quantity = case when s_quantity >= quantities[line] + 10 then s_quantity - quantities[line]
        else s_quantity - quantities[line] + 91 end,
      s_ytd = s_ytd + quantities[line], s_order_cnt = s_order_cnt + 1,
      s_remote_cnt = s_remote_cnt + (supplies[line] <> home)::int
      where s_w_id = supplies[line] and s_i_id = items[line]
      returning case place when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03 when 4 then s_dist_04
        when 5 then s_dist_05 when 6 then s_dist_06 when 7 then s_dist_07 when 8 then s_dist_08
        when 9 then s_dist_09 else s_dist_10 end, s_quantity, s_data
      into strict dist_info, quantity_left, original;
    amount := price * quantities[line];
    insert into order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity,
        ol_amount, ol_dist_info)
      values (number, place, home, line, items[line], supplies[line], null, quantities[line], amount, dist_info);
    total := total + amount;
    lines := lines || format('%s|%s|%s|%s|%s', name, quantity_left,
      case when brand like '%ORIGINAL%' and original like '%ORIGINAL%' then 'B' else 'G' end, price, amount);
  end loop;
  total := round(total * (1 - discount) * (1 + warehouse_tax + district_tax), 2);
end
