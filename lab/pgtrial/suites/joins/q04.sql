-- Estimate too low: a category is of one department, and frequent products are bought by frequent people.
select p.plan, count(*) as sales, count(distinct s.person_id) as people
from products t
join sales s on s.product_id = t.product_id
join people p on p.person_id = s.person_id
where t.department = 'travel'
  and t.category in ('category 120', 'category 121', 'category 122', 'category 123')
group by p.plan
order by p.plan;
