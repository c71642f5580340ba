declare
  number int;
  buyer int;
  amount numeric;
begin
  for place in 1 .. 10 loop
    -- The row is locked, so that of two deliveries the second takes the next order.
    select no_o_id into number from new_order where no_w_id = home and no_d_id = place
      order by no_o_id limit 1 for update;
    -- All orders of the district are delivered: it is skipped (clause 2.7.4.2).
    continue when not found;
    delete from new_order where no_w_id = home and no_d_id = place and no_o_id = number;
    update orders set o_carrier_id = carrier where o_w_id = home and o_d_id = place and o_id = number
      returning o_c_id into strict buyer;
    with lines as (update order_line set ol_delivery_d = current_timestamp
        where ol_w_id = home and ol_d_id = place and ol_o_id = number returning ol_amount)
      select sum(ol_amount) into strict amount from lines;
    update customer set c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
      where c_w_id = home and c_d_id = place and c_id = buyer;
    delivered := delivered || number;
  end loop;
end
