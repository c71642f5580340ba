-- The ten purchases of schools with the most that was still to be shipped on a day.
select p.purchase_id,
       sum(l.price * (1 - l.discount)) as waiting,
       p.purchased_on,
       p.urgency
from buyers b
join purchases p on p.buyer_id = b.buyer_id
join lines l on l.purchase_id = p.purchase_id
where b.segment = 'schools'
  and p.purchased_on < date '2021-05-20'
  and l.shipped_on > date '2021-05-20'
group by p.purchase_id, p.purchased_on, p.urgency
order by waiting desc, p.purchased_on, p.purchase_id
limit 10;
