-- Which supplier has the highest revenue of a quarter?
with revenue as (
    select supplier_id, sum(price * (1 - discount)) as total
    from lines
    where shipped_on >= date '2020-07-01'
      and shipped_on < date '2020-10-01'
    group by supplier_id
)
select s.supplier_id, s.supplier, s.address, s.phone, revenue.total
from suppliers s
join revenue on revenue.supplier_id = s.supplier_id
where revenue.total = (select max(total) from revenue)
order by s.supplier_id;
