begin
  if buyer = 0 then
    select (array_agg(c_id order by c_first))[((count(*) + 1) / 2)::int] into strict buyer from customer
      where c_w_id = home and c_d_id = place and c_last = last_name;
  end if;
  select c_balance, concat_ws(' ', c_first, c_middle, c_last) into strict balance, name from customer
    where c_w_id = home and c_d_id = place and c_id = buyer;
  select o_id, o_entry_d, o_carrier_id into strict number, entered, carrier from orders
    where o_w_id = home and o_d_id = place and o_c_id = buyer order by o_id desc limit 1;
  select array_agg(concat_ws('|', ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d)) into lines
    from order_line where ol_w_id = home and ol_d_id = place and ol_o_id = number;
end
