-- Estimate wrong: columns of two tables are compared, for which a third is assumed, and only old products have ended.
select t.department, count(*) as sales, max(s.sold_on) as last_sale
from products t
join sales s on s.product_id = t.product_id
join reviews r on r.product_id = t.product_id and r.person_id = s.person_id
where t.ended_on is not null
  and t.launched_on < date '2018-01-01'
  and s.sold_on > t.ended_on
  and r.written_on < s.sold_on
group by t.department
order by t.department;
