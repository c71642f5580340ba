declare
  next int;
begin
  select d_next_o_id into strict next from district where d_w_id = home and d_id = place;
  select count(distinct s_i_id) into low from order_line join stock on s_w_id = home and s_i_id = ol_i_id
    where ol_w_id = home and ol_d_id = place and ol_o_id >= next - 20 and ol_o_id < next and s_quantity < threshold;
end
