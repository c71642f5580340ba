-- Which share of a month's revenue comes from seasonal parts?
select round(
           100 * sum(case when t.kind like 'seasonal/%' then l.price * (1 - l.discount) else 0 end)
               / sum(l.price * (1 - l.discount)),
           4
       ) as percent
from lines l
join parts t on t.part_id = l.part_id
where l.shipped_on >= date '2023-03-01'
  and l.shipped_on < date '2023-04-01';
