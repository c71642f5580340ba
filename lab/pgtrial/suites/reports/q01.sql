-- What was charged, by outcome and state, for all lines that were shipped by a day.
select outcome,
       state,
       sum(quantity) as pieces,
       sum(price) as listed,
       sum(price * (1 - discount)) as net,
       sum(price * (1 - discount) * (1 + tax)) as charged,
       round(avg(quantity), 4) as mean_pieces,
       round(avg(price), 4) as mean_price,
       round(avg(discount), 4) as mean_discount,
       count(*) as lines
from lines
where shipped_on <= date '2024-05-15'
group by outcome, state
order by outcome, state;
