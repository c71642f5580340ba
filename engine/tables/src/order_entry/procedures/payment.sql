declare
  warehouse_name text;
  district_name text;
begin
  update warehouse set w_ytd = w_ytd + amount where w_id = home
    returning w_name, concat_ws(', ', w_street_1, w_street_2, w_city, w_state, w_zip)
    into strict warehouse_name, warehouse_address;
  update district set d_ytd = d_ytd + amount where d_w_id = home and d_id = place
    returning d_name, concat_ws(', ', d_street_1, d_street_2, d_city, d_state, d_zip)
    into strict district_name, district_address;
  if buyer = 0 then
    select (array_agg(c_id order by c_first))[((count(*) + 1) / 2)::int] into strict buyer from customer
      where c_w_id = buyer_home and c_d_id = buyer_place and c_last = last_name;
  end if;
  update customer set c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount,
      c_payment_cnt = c_payment_cnt + 1,
      c_data = case c_credit when 'BC' then
        substr(concat_ws(' ', buyer, buyer_place, buyer_home, place, home, amount) || '|' || c_data, 1, 500)
        else c_data end
    where c_w_id = buyer_home and c_d_id = buyer_place and c_id = buyer
    returning concat_ws(', ', c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone,
        c_since, c_credit, c_credit_lim, c_discount), c_balance, case c_credit when 'BC' then substr(c_data, 1, 200) end
    into strict customer_details, balance, note;
  insert into history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    values (buyer, buyer_place, buyer_home, place, home, current_timestamp, amount,
      warehouse_name || '    ' || district_name);
end
