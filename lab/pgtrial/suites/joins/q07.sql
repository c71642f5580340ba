-- Estimate too low: only reviews of one star can be flagged, and they are of the bad products that sell most.
select t.department, count(*) as flagged, count(distinct r.product_id) as products
from reviews r
join products t on t.product_id = r.product_id
join people p on p.person_id = r.person_id
where r.stars = 1
  and r.flagged
  and exists (
      select 1
      from sales s
      where s.product_id = r.product_id
        and s.person_id = r.person_id
  )
group by t.department
order by t.department;
